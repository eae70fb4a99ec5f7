// Directories of images, odd ones included.
#include <chrono>
#include <cmath>

#include "data/loader.h"
#include "data/pictures/augment.h"
#include "data/pictures/encoded.h"
#include "data/reading.h"
#include "tests/support/pictures.h"

namespace skein::data {
namespace {

const Bytes kText{'n', 'o', 't', 'e', 's'};

// Writes train/ and val/ of two classes with everything that occurs in practice.
void write_odd_folder(const TemporaryDirectory& d) {
  const Bytes jpeg = jpeg_bytes(waves(60, 80, 3)), png = png_bytes(waves(50, 30, 3));
  d.write("train/cat/a.jpg", jpeg);
  d.write("train/cat/b.JPEG", png);  // a PNG by content
  d.write("train/cat/deep/er/c.png", jpeg);
  d.write("train/cat/d.dat", jpeg);
  d.write("train/cat/notes.txt", kText);    // not an image
  d.write("train/cat/.hidden.jpg", jpeg);   // passed over
  d.write("train/cat/.cache/x.jpg", jpeg);  // skipped, too
  d.write("train/cat/empty.jpg", {});       // unreadable from here
  d.write("train/cat/cut.jpg", Bytes(jpeg.begin(), jpeg.begin() + 900));
  d.write("train/cat/text.png", kText);
  d.write("train/dog/gray.jpg", jpeg_bytes(waves(40, 40, 1)));
  d.write("train/dog/cmyk.jpg", jpeg_bytes(waves(40, 40, 4)));
  d.write("train/dog/one.png", png_bytes({1, 1, 3, {9, 8, 7}}));
  d.write("train/README", kText);
  d.write("val/dog/e.jpg", jpeg);
}

TEST(ImageFolder, ListsImagesByContentAndNameInOrder) {
  const TemporaryDirectory d;
  write_odd_folder(d);
  const Split split = open_data("imagefolder:" + d.path(), 0);
  EXPECT_EQ(split.train->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(split.train->image(), (ImageSize{0, 0, 3}));
  std::vector<std::string> names;
  std::vector<int> labels;
  for (int64_t i = 0; i < split.train->size(); ++i) {
    names.push_back(split.train->name(i).substr(d.path().size() + 7));
    labels.push_back(split.train->label(i));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"cat/a.jpg", "cat/b.JPEG", "cat/cut.jpg", "cat/d.dat",
                                             "cat/deep/er/c.png", "cat/empty.jpg", "cat/text.png",
                                             "dog/cmyk.jpg", "dog/gray.jpg", "dog/one.png"}));
  EXPECT_EQ(labels, (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(split.test->size(), 1);
  EXPECT_EQ(split.test->label(0), 1);
}

TEST(ImageFolder, UnreadableFilesAreCountedExactlyUnderEveryView) {
  const TemporaryDirectory d;
  write_odd_folder(d);
  const Split split = open_data("imagefolder:" + d.path(), 0);
  const ImageSize out{24, 24, 3};
  constexpr int64_t kEpochs = 20;
  const Plan plan{
      [](int64_t) { return int64_t(10); }, [](int64_t, int64_t row) { return row; },
      [&](int64_t step, int64_t, int64_t index) {
        return step ? train_view(Augment::kRegion, 1, step, index, out) : eval_view({0, 0, 3}, out);
      }};
  Loader loader(*split.train, plan, out, 0, kEpochs, kCpu, 3);
  for (int64_t k = 0; k < kEpochs; ++k) {
    const Batch b = loader.next();
    ASSERT_EQ(b.unreadable, 3);
    const int32_t* labels = b.labels.data<int32_t>();
    ASSERT_EQ((std::vector<int32_t>(labels, labels + 10)),
              (std::vector<int32_t>{0, 0, -1, 0, 0, -1, -1, 1, 1, 1}));
  }
  EXPECT_EQ(loader.unreadable(), 3 * kEpochs);
  const auto names = loader.newly_unreadable();
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0].name, d / "train/cat/cut.jpg");
  EXPECT_STREQ(names[0].why, "truncated: the file ends early");
  EXPECT_STREQ(names[1].why, "empty");
  EXPECT_EQ(names[2].name, d / "train/cat/text.png");
  EXPECT_STREQ(names[2].why, "neither JPEG nor PNG");
}

TEST(ImageFolder, ReadsThePixelsOfThePicture) {
  const TemporaryDirectory d;
  write_odd_folder(d);
  const Split split = open_data("imagefolder:" + d.path(), 0);
  Raster r{50, 30, 3, Bytes(4500)};
  ASSERT_TRUE(split.train->read(1, View{}, {50, 30, 3}, r.bytes.data()));
  EXPECT_EQ(r.bytes, waves(50, 30, 3).bytes);
  r = {60, 80, 3, Bytes(14400)};
  ASSERT_TRUE(split.train->read(4, View{}, {60, 80, 3}, r.bytes.data()));
  EXPECT_LT(mean_difference(r, waves(60, 80, 3)), 2.5);
  std::filesystem::remove(d / "train/cat/a.jpg");  // deleted after it was listed
  EXPECT_FALSE(split.train->read(0, View{}, {8, 8, 3}, r.bytes.data()));
}

TEST(ImageFolder, SaysWhatIsWrongWithADirectory) {
  const Bytes png = png_bytes({2, 2, 3, Bytes(12)});
  const auto error = [](const TemporaryDirectory& d, const std::string& below = "") {
    return message_of<BadFile>([&] { open_data("imagefolder:" + d.path() + below, 0); });
  };
  expect_says(message_of<BadOption>([] { open_data("imagefolder", 0); }),
              {"imagefolder:DIRECTORY", "train/CLASS/IMAGE"});
  const TemporaryDirectory empty, flat, one, none, hollow, no_val, stranger, loop;
  expect_says(error(empty), {empty.path(), "is empty", "directory per class"});
  expect_says(error(empty, "/gone"), {"/gone", "no such directory"});
  flat.write("a.png", png);
  expect_says(error(flat), {flat.path(), "no class directories"});
  expect_says(error(flat, "/a.png"), {"/a.png", "is a file"});
  one.write("only/a.png", png);
  expect_says(error(one), {"only one class", "\"only\""});
  none.write("a/notes.txt", kText), none.make("b");
  expect_says(error(none), {none.path(), "no JPEG or PNG files", "CLASS/IMAGE.jpg"});
  hollow.write("a/a.png", png), hollow.make("b");
  expect_says(error(hollow), {hollow / "b", "no JPEG or PNG files"});
  no_val.write("train/a/a.png", png), no_val.write("train/b/a.png", png);
  expect_says(error(no_val), {no_val.path(), "train/ but no val/, valid/, validation/, test/ or testing/"});
  EXPECT_EQ(error(no_val, "/train"), "");
  for (const char* path : {"train/a/a.png", "train/b/a.png", "test/a/a.png", "test/c/a.png"})
    stranger.write(path, png);
  expect_says(error(stranger), {stranger / "test/c", "no class of that name"});
  loop.write("a/a.png", png), loop.write("b/a.png", png);
  std::filesystem::create_directory_symlink(loop.path(), loop / "b/back");
  expect_says(error(loop), {"nested deeper", "back"});
}

TEST(ImageFolder, FilesOfOtherKindsAreCountedAndNamedAlsoWhenTheIndexIsKept) {
  const TemporaryDirectory d, cache;
  write_split(d, "train", jpeg_bytes(waves(8, 8, 3))), write_split(d, "val", jpeg_bytes(waves(8, 8, 3)));
  for (const char* file : {"cat/a.webp", "cat/b.WEBP", "dog/c.gif", "dog/README", "dog/.hidden.webp"})
    d.write(text("train/", file), kText);
  const auto hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& e : std::filesystem::recursive_directory_iterator(d.path()))
    if (e.is_directory()) std::filesystem::last_write_time(e.path(), hour_ago);
  for (const char* index : {"made by scanning", "that of"}) {
    const auto notes = open_data("imagefolder:" + d.path(), 0).notes;
    ASSERT_EQ(notes.size(), 3u);  // nothing of that kind in val/
    expect_says(notes[0], {index});
    EXPECT_EQ(notes[1], d / "train: 4 files of other kinds skipped (2 .webp, 1 without a suffix, 1 .gif)");
  }
}

TEST(ImageFolder, FindsPicturesAgainWhoseLinksHadLedNowhere) {
  const TemporaryDirectory d, disk, cache;
  write_split(d, "train", jpeg_bytes(waves(8, 8, 3))), write_split(d, "val", jpeg_bytes(waves(8, 8, 3)));
  std::filesystem::create_symlink(disk / "a.jpg", d / "train/cat/linked.jpg");
  const auto hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& e : std::filesystem::recursive_directory_iterator(d.path()))
    if (e.is_directory()) std::filesystem::last_write_time(e.path(), hour_ago);
  const Split before = open_data("imagefolder:" + d.path(), 0);
  expect_says(before.notes[0], {"made by scanning and not kept, for cat has links that lead nowhere"});
  EXPECT_EQ(before.notes[1], d / "train: 1 file of another kind skipped (1 .jpg links that lead nowhere)");
  disk.write("a.jpg", jpeg_bytes(waves(8, 8, 3)));
  EXPECT_EQ(open_data("imagefolder:" + d.path(), 0).train->size(), before.train->size() + 1);
}

TEST(ImageFolder, SaysOfWhatKindAnUnreadableFileIs) {
  for (const auto& [begin, why] :
       {std::pair<std::string, const char*>{"RIFF1234WEBPVP8 ", "WebP, not JPEG or PNG"},
        {"GIF89a", "GIF, not JPEG or PNG"},
        {"<!DOCTYPE html>", "HTML or SVG, not JPEG or PNG"},
        {"????ftypheic", "HEIF or AVIF, not JPEG or PNG"},
        {"RIFF", "neither JPEG nor PNG"}}) {
    uint8_t pixels[12];
    reading() = {};
    EXPECT_FALSE(draw_encoded(Bytes(begin.begin(), begin.end()), "a.jpg", View{}, {2, 2, 3}, pixels));
    EXPECT_STREQ(reading().why, why);
    EXPECT_EQ(reading().odd, kUndecodable);
  }
}

}  // namespace
}  // namespace skein::data
