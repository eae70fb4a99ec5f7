// The index of an image folder: it is kept, used again, and not trusted when out of date or damaged.
#include "data/sources/index_cache.h"

#include <chrono>
#include <set>

#include "data/sources/folder_index.h"
#include "data/sources/image_listing.h"
#include "data/sources/shards.h"
#include "tests/support/data_files.h"

namespace skein::data {
namespace {

namespace fs = std::filesystem;

const Bytes kImage = {0xFF, 0xD8, 0xFF, 0};

// A folder of two classes, one nested, that looks an hour old, and a private user's cache.
class Folder : public ::testing::Test {
 protected:
  Folder() {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", (cache_ / "user").c_str(), 1);
    for (const char* name : {"cat/a.jpg", "cat/b.png", "cat/old/c.jpeg", "dog/d.jpg", "dog/e.dat"})
      data_.write(name, kImage);
    data_.write("dog/notes.txt", {'n'});
    age();
  }
  ~Folder() override {
    if (before_.empty())
      unsetenv("XDG_CACHE_HOME");
    else
      setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }
  void age() const {
    for (const auto& e : fs::recursive_directory_iterator(data_.path()))
      if (e.is_directory()) fs::last_write_time(e.path(), then_);
  }
  // Lists the images; note_ receives how they were found.
  std::set<std::string> listed() {
    std::vector<std::string> notes;
    std::set<std::string> names;
    for (const Listed& l : list_images(data_.path(), list_classes(data_.path()), &notes))
      names.insert(std::to_string(l.label) + ' ' + l.path);
    EXPECT_EQ(notes.size(), 2u);
    expect_says(notes.at(1), {"1 file of another kind skipped (1 .txt)"});
    note_ = notes.at(0);
    return names;
  }

  const fs::file_time_type then_ = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const TemporaryDirectory data_, cache_;
  const std::string beside_ = data_ / ".skein-index";
  const std::set<std::string> all_{"0 cat/a.jpg", "0 cat/b.png", "0 cat/old/c.jpeg", "1 dog/d.jpg",
                                   "1 dog/e.dat"};
  std::string note_, before_;
};

TEST_F(Folder, IsScannedOnce) {
  EXPECT_EQ(listed(), all_);
  expect_says(note_, {"5 images", "scanning", "kept in " + beside_});
  EXPECT_EQ(listed(), all_);
  expect_says(note_, {"5 images", "that of " + beside_});
  EXPECT_EQ(listed(), all_);  // reading it did not change it
  expect_says(note_, {"that of " + beside_});
}

TEST_F(Folder, IsScannedAgainWhenADirectoryHasChanged) {
  listed();
  data_.write("cat/old/new.jpg", kImage);
  std::set<std::string> more = all_;
  more.insert("0 cat/old/new.jpg");
  EXPECT_EQ(listed(), more);
  expect_says(note_, {"scanning", "not kept", "cat/old", "two seconds"});
  age();
  EXPECT_EQ(listed(), more);
  expect_says(note_, {"scanning", "kept in"});
  fs::remove(data_ / "cat/old/new.jpg");
  age();  // mtime is restored, as archivers do, but ctime shows the change
  EXPECT_EQ(listed(), all_);
  expect_says(note_, {"scanning", "kept in"});
  data_.write("eel/x.jpg", kImage);
  more = all_;
  more.insert("2 eel/x.jpg");
  EXPECT_EQ(listed(), more);
  age();
  listed();
  fs::remove_all(data_ / "eel");
  EXPECT_EQ(listed(), all_);
}

TEST_F(Folder, ABrokenIndexIsIgnoredAndMadeAnew) {
  listed();
  Bytes good;
  ASSERT_TRUE(read_raw(beside_, 1 << 20, good));
  const Bytes whole = read_unpacked(beside_);
  std::vector<Bytes> broken{{}, {'h', 'i'}, Bytes(good.begin(), good.end() - 9), noise(5000)};
  for (size_t at = 12; at < good.size(); at += 17) broken.push_back(good), broken.back()[at] ^= 0x40;
  for (const Bytes& b : broken) {
    data_.write(".skein-index", b);
    // Deflate pads its last byte; a change in the padding does no harm.
    try {
      if (read_unpacked(beside_) == whole) continue;
    } catch (const BadFile&) {}
    ASSERT_EQ(listed(), all_);
    expect_says(note_, {"scanning", "kept in " + beside_});
  }
  // Intact files with wrong contents: another version, an early end, wrong counts.
  const IndexCache cache("images 2", data_.path(), data_.path());
  for (const std::string& inside : {std::string(), std::string("9\0", 2), std::string("1\0cat\0x\0", 8)}) {
    ASSERT_EQ(cache.store(inside), beside_);
    ASSERT_EQ(listed(), all_);
    expect_says(note_, {"scanning", "kept in " + beside_});
  }
  IndexCache("images 0", data_.path(), data_.path()).store(std::string("0\0", 2));
  ASSERT_EQ(listed(), all_);
  expect_says(note_, {"scanning"});
}

// Its checksum and its times are right, but it names what no scan of the folder finds.
TEST_F(Folder, AForgedIndexNamesNothingOutside) {
  data_.write("private.jpg", kImage);
  age();
  listed();
  const IndexCache cache("images 2", data_.path(), data_.path());
  const auto index_of = [&](const std::string& name) {
    Record r;
    r.put(int64_t(3));
    for (const std::string d : {"cat", "cat/old", "dog"}) {
      const Times t = times_of(data_ / d);
      r.put(d), r.put(t.modified), r.put(t.changed), r.put(int64_t(1)), r.put(name), r.put(int64_t(0));
    }
    return r.bytes();
  };
  EXPECT_EQ(parse_image_index(index_of("d.jpg")).size(), 3u);
  for (const char* name : {"../private.jpg", "..", ".hidden.jpg", "/etc/passwd", "", "old/c.jpeg", "a//b"}) {
    ASSERT_EQ(cache.store(index_of(name)), beside_);
    ASSERT_EQ(listed(), all_) << name;
    expect_says(note_, {"scanning"});
  }
}

TEST_F(Folder, AnIndexThatAnotherUserMayHaveWrittenIsLeftAlone) {
  listed();
  Bytes before, after;
  ASSERT_TRUE(read_raw(beside_, 1 << 20, before));
  fs::permissions(beside_, fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ(listed(), all_);
  expect_says(note_, {"scanning", "kept in " + (cache_ / "user/skein/index-")});
  EXPECT_EQ(listed(), all_);
  expect_says(note_, {"that of " + (cache_ / "user/skein/index-")});
  ASSERT_TRUE(read_raw(beside_, 1 << 20, after));
  EXPECT_EQ(before, after);
}

TEST(ShardIndex, NumbersOutsideTheShardAreNotBelieved) {
  const auto index = [](int64_t offset, int64_t size, int64_t label) {
    Record r;
    r.put(int64_t(1)), r.put(std::string("a.tar")), r.put(int64_t(7)), r.put(int64_t(8)),
        r.put(int64_t(1000));
    r.put(int64_t(1)), r.put(std::string("x.jpg")), r.put(offset), r.put(size), r.put(label);
    return parse_shard_index(r.bytes()).size();
  };
  EXPECT_EQ(index(512, 488, 3), 1u);
  EXPECT_EQ(index(512, 489, 3), 0u);
  EXPECT_EQ(index(-1, 1, 3), 0u);
  EXPECT_EQ(index(512, INT64_MAX, 3), 0u);
  EXPECT_EQ(index(512, 488, int64_t(1) << 32), 0u);
  EXPECT_EQ(index(512, 488, -1), 0u);
}

TEST_F(Folder, WhereNothingCanBeWrittenTheUsersCacheServes) {
  fs::create_directories(data_ / ".skein-index/in the way");
  EXPECT_EQ(listed(), all_);
  expect_says(note_, {"kept in " + (cache_ / "user/skein/index-")});
  EXPECT_EQ(listed(), all_);
  expect_says(note_, {"that of " + (cache_ / "user/skein/index-")});
  for (const auto& e : fs::directory_iterator(data_.path()))
    EXPECT_EQ(e.path().string().find(".skein-index."), std::string::npos) << e.path();  // no temporary files
  setenv("XDG_CACHE_HOME", (data_ / "dog/notes.txt").c_str(), 1);
  EXPECT_EQ(listed(), all_);
  expect_says(note_, {"scanning", "not kept", "can be written"});
}

TEST(IndexCache, OneUsersCacheHoldsManyDataSetsApart) {
  const TemporaryDirectory d;
  setenv("XDG_CACHE_HOME", (d / "cache").c_str(), 1);
  for (const char* name : {"a/.skein-index/x", "b/.skein-index/x"}) d.make(name);
  const IndexCache a("things 1", d / "a", d / "a"), b("things 1", d / "b", d / "b");
  EXPECT_NE(a.store("of a"), "");
  EXPECT_FALSE(b.load());
  EXPECT_NE(b.store("of b"), "");
  EXPECT_EQ(a.load()->bytes, "of a");
  EXPECT_EQ(b.load()->bytes, "of b");
  unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace skein::data
