// Tar shards: they are found, indexed once, read at random, and refused with one clear message when invalid.
#include <chrono>
#include <set>

#include "data/sources/shards.h"
#include "tests/support/shards.h"

namespace skein::data {
namespace {

namespace fs = std::filesystem;

int gray_of(const DataSource& s, int64_t i) {
  Bytes pixels(192);
  EXPECT_TRUE(s.read(i, View{}, {8, 8, 3}, pixels.data())) << s.name(i);
  EXPECT_EQ(std::set<uint8_t>(pixels.begin(), pixels.end()).size(), 1u);
  return pixels[0];
}

TEST(WebDataset, EverySampleIsWhereTheIndexSays) {
  const TemporaryDirectory d;
  for (int s = 0; s < 3; ++s) d.write(text("train-0", s, ".tar"), shard(10 * s, 10).finished());
  d.write("val-0.tar", shard(100, 7).finished());
  for (const std::string& spec : {d.path(), d / "train-{00..02}.tar,val=" + (d / "val-*.tar"),
                                  d / "train-{00,01,02}.tar,val=" + (d / "val-{0..0}.tar")}) {
    const Split split = open_data("webdataset:" + spec, 0);
    ASSERT_EQ(split.train->size(), 30);
    ASSERT_EQ(split.test->size(), 7);
    EXPECT_EQ(split.train->classes(), (std::vector<std::string>{"0", "1", "2"}));
    for (int64_t i = 29; i >= 0; --i) {
      EXPECT_EQ(gray_of(*split.train, i), i);
      EXPECT_EQ(split.train->label(i), i % 3);
    }
    for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(gray_of(*split.test, i), 100 + i);
    expect_says(split.train->name(29), {d / "train-02.tar", "a/29.png"});
    ASSERT_EQ(split.notes.size(), 2u);
    expect_says(split.notes[0], {"30 samples in 3 shards"});
  }
}

TEST(WebDataset, WithoutTestShardsATenthOfEachClassTests) {
  const TemporaryDirectory d;
  d.write("one.tar", shard(0, 120).finished());
  d.write("classes.txt",
          {'c', 'a', 't', '\n', 'd', 'o', 'g', '\r', '\n', 'e', 'e', 'l', '\n', 'f', 'o', 'x', '\n'});
  const Split split = open_data("webdataset:" + d.path(), 0);
  EXPECT_EQ(split.train->classes(), (std::vector<std::string>{"cat", "dog", "eel", "fox"}));
  std::set<int> seen;
  for (const DataSource* s : {split.train.get(), split.test.get()})
    for (int64_t i = 0; i < s->size(); ++i) seen.insert(gray_of(*s, i));
  EXPECT_EQ(seen.size(), 120u);
  std::vector<int> per_class(3);
  for (int64_t i = 0; i < split.test->size(); ++i) ++per_class[size_t(split.test->label(i))];
  EXPECT_EQ(per_class, (std::vector<int>{4, 4, 4}));
}

TEST(WebDataset, ABlankLineShiftsNoNames) {
  const TemporaryDirectory d;
  d.write("one.tar", shard(0, 30).finished());
  const auto write = [&](const std::string& names) { d.write("classes.txt", {names.begin(), names.end()}); };
  for (const std::string blank : {"cat\n\ndog\neel\n", "cat\r\n\r\ndog\r\neel\r\n"}) {
    write(blank);
    expect_says(error(d.path()), {"classes.txt:2: is blank", "the name of class 1"});
  }
  for (const std::string ends : {"cat\ndog\neel", "cat\ndog\neel\n", "cat\ndog\neel\n\n\r\n",
                                 "\xEF\xBB\xBF"
                                 "cat\r\ndog\r\neel"}) {
    write(ends);
    EXPECT_EQ(open_data("webdataset:" + d.path(), 0).train->classes(),
              (std::vector<std::string>{"cat", "dog", "eel"}));
  }
}

TEST(WebDataset, ShardsAreReadThroughOnceAndAgainWhereTheyChange) {
  const TemporaryDirectory d, cache;
  const auto then = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const auto write = [&](const std::string& name, const TarBytes& tar) {
    d.write(name, tar.finished());
    fs::last_write_time(d / name, then);
  };
  write("0.tar", shard(0, 10)), write("1.tar", shard(10, 10)), write("2.tar", shard(20, 10));
  const auto opened = [&] {
    Split split = open_data("webdataset:" + (d / "{0..2}.tar"), 0);
    std::set<int> seen;
    for (const DataSource* s : {split.train.get(), split.test.get()})
      for (int64_t i = 0; i < s->size(); ++i) seen.insert(gray_of(*s, i));
    EXPECT_EQ(seen.size(), 30u);
    return split.notes.at(0);
  };
  expect_says(opened(), {"made by reading 3", "kept in " + (d / ".skein-index-")});
  expect_says(opened(), {"that of " + (d / ".skein-index-")});
  write("1.tar", shard(40, 10));
  expect_says(opened(), {"made by reading 1 and kept"});
  expect_says(opened(), {"that of"});
  for (const auto& e : fs::directory_iterator(d.path()))
    if (e.path().filename().string().starts_with(".skein-index")) d.write(e.path().filename(), noise(300));
  expect_says(opened(), {"made by reading 3 and kept"});
  d.write("1.tar", shard(10, 10).finished());
  expect_says(opened(), {"made by reading 1 and kept"});  // two are old enough
  expect_says(opened(), {"made by reading 1"});
}

TEST(WebDataset, LabelsMayBeInJsonAndMembersInAnyOrder) {
  TarBytes tar;
  const Bytes png = png_bytes({8, 8, 3, Bytes(192, 5)}), jpeg = jpeg_bytes({8, 8, 3, Bytes(192, 9)});
  tar.add("README", "about these");
  tar.add("dir/", Bytes(), '5');
  tar.add("x.json", R"({"label": 1, "text": "a, \"b\""})");
  tar.add("y.PNG", png);
  tar.add("x.jpeg", jpeg);
  tar.add("y.json", R"({"label": "7"})");
  tar.add("y.cls", " 0 ");  // goes before .json
  tar.add("z.jpg", png);
  tar.add("z.cls", "2");
  tar.add("y.seg.png", "not the image: its kind is .seg.png");
  const TemporaryDirectory d;
  d.write("t.tar", tar.finished()), d.write("v.tar", tar.finished());
  const Split split = open_data("webdataset:" + (d / "t.tar,val=") + (d / "v.tar"), 0);
  ASSERT_EQ(split.train->size(), 3);
  EXPECT_EQ(split.train->label(0), 1);
  EXPECT_EQ(split.train->label(1), 0);
  EXPECT_EQ(gray_of(*split.train, 0), 9);
  EXPECT_EQ(gray_of(*split.train, 1), 5);
  EXPECT_EQ(gray_of(*split.train, 2), 5);  // a PNG called .jpg
}

TEST(WebDataset, SaysWhatIsWrong) {
  const TemporaryDirectory d;
  const Bytes png = png_bytes({8, 8, 3, Bytes(192, 5)});
  const auto with = [&](const std::vector<std::pair<std::string, std::string>>& members) {
    TarBytes tar = shard(0, 4);
    for (const auto& [name, content] : members) tar.add(name, content);
    return error_of(tar.finished());
  };
  const std::string image(png.begin(), png.end());
  expect_says(message_of<BadOption>([] { open_data("webdataset", 0); }),
              {"webdataset:DIRECTORY", "train-{000..146}.tar"});
  expect_says(error(d.path()), {d.path(), "no shards in this directory", "tar files"});
  expect_says(error(d / "no-*.tar"), {d / "no-*.tar", "no shards match"});
  expect_says(error(d / "no-{0..3}.tar"), {d / "no-0.tar", "no such file", "4 shards of", "no-{0..3}.tar"});
  expect_says(error(d / "no-{0..3.tar"), {"{ without a }"});
  expect_says(error(d / "no-{3..0}.tar"), {"{3..0}", "not a range"});
  expect_says(error(d / "no-{0..1999}-{0..1999}.tar"), {"more than there can be"});
  expect_says(with({{"k.jpg", image}}), {"x.tar: sample k has no label", "k.cls", "k.json"});
  expect_says(with({{"k.cls", "1"}}), {"x.tar: sample k has a label but no .jpg"});
  expect_says(with({{"k.jpg", image}, {"k.cls", "cat"}}), {"x.tar: k.cls: \"cat\" is not a label"});
  expect_says(with({{"k.jpg", image}, {"k.cls", ""}}), {"x.tar: k.cls", "is not a label"});
  expect_says(with({{"k.jpg", image}, {"k.cls", "-1"}}), {"x.tar: k.cls: label -1 is out of range"});
  expect_says(with({{"k.jpg", image}, {"k.cls", "99999999999999999999"}}), {"k.cls: label", "out of range"});
  expect_says(with({{"k.jpg", image}, {"k.cls", "77"}}),
              {"x.tar: label 77 of k.jpg is out of range", "0 to 4", "classes.txt"});
  expect_says(with({{"k.jpg", image}, {"k.json", "{"}}), {"x.tar: k.json: is not JSON"});
  const std::string deep = "{\"label\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  expect_says(with({{"k.jpg", image}, {"k.json", deep}}), {"x.tar: k.json", "nested deeper than 64 levels"});
  expect_says(with({{"k.jpg", image}, {"k.json", "{}"}}), {"sample k has no label"});
  expect_says(with({{"a/0.jpg", image}}), {"a/0.jpg: a second image of this key"});
  expect_says(error_of(TarBytes().finished()), {"no samples", "KEY.jpg and KEY.cls"});
  expect_says(error_of(shard(0, 1).finished()), {"only one class"});
  expect_says(error_of(gzipped(shard(0, 4).finished())), {"x.tar: is compressed", "gunzip"});
  expect_says(error_of(noise(5000)), {"x.tar: is not a tar archive"});
  d.write("t.tar", shard(0, 9).finished());
  TarBytes beyond = shard(0, 2);
  beyond.add("k.png", png), beyond.add("k.cls", "3");
  d.write("v.tar", beyond.finished());
  expect_says(error(d / "t.tar,val=" + (d / "v.tar")), {"v.tar: label 3 of k.png is out of range", "0 to 2"});
}

}  // namespace
}  // namespace skein::data
