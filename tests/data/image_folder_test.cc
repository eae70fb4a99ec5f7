// JPEG, PNG and directories of them, odd ones included.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>

#include "data/files.h"
#include "data/loader.h"
#include "data/pictures/augment.h"
#include "data/pictures/encoded.h"
#include "data/pictures/jpeg.h"
#include "data/pictures/png.h"
#include "data/reading.h"
#include "tests/support/data_files.h"

namespace skein::data {
namespace {

using Decode = bool (*)(const uint8_t*, size_t, const View&, const ImageSize&, Picture&);

// The image as a View shows it, decoded; an empty raster if that fails.
Raster decoded(Decode decode, const Bytes& file, const View& view, const ImageSize& out) {
  Picture p;
  if (!decode(file.data(), file.size(), view, out, p)) return {};
  Raster r{out.height, out.width, 3, Bytes(size_t(out.height * out.width * 3))};
  draw(view, p, out, r.bytes.data());
  return r;
}
Raster decoded_whole(Decode decode, const Bytes& file, int height, int width) {
  return decoded(decode, file, View{}, {height, width, 3});
}
double mean_difference(const Raster& a, const Raster& b) {
  if (a.bytes.size() != b.bytes.size() || a.bytes.empty()) return 1e9;
  double sum = 0;
  for (size_t i = 0; i < a.bytes.size(); ++i) sum += std::abs(int(a.bytes[i]) - int(b.bytes[i]));
  return sum / double(a.bytes.size());
}
Raster gray_as_rgb(const Raster& gray) {
  Raster r{gray.height, gray.width, 3, {}};
  for (int i = 0; i < gray.height * gray.width; ++i)
    for (int c = 0; c < 3; ++c) r.bytes.push_back(gray.bytes[size_t(i * gray.channels)]);
  return r;
}

TEST(Jpeg, DecodesColorGrayAndProgressive) {
  const Raster color = waves(45, 70, 3), gray = waves(45, 70, 1);
  EXPECT_LT(mean_difference(decoded_whole(decode_jpeg, jpeg_bytes(color), 45, 70), color), 2.5);
  EXPECT_LT(
      mean_difference(decoded_whole(decode_jpeg, jpeg_bytes(color, {.progressive = true}), 45, 70), color),
      2.5);
  EXPECT_LT(
      mean_difference(decoded_whole(decode_jpeg, jpeg_bytes(color, {.subsampled = true}), 45, 70), color), 6);
  EXPECT_LT(mean_difference(decoded_whole(decode_jpeg, jpeg_bytes(gray), 45, 70), gray_as_rgb(gray)), 1.5);
}

// Four channels are stored inverted by Adobe's convention, which libjpeg's Adobe marker announces.
TEST(Jpeg, ConvertsCmyk) {
  Raster cmyk = waves(40, 50, 4), expected{40, 50, 3, {}};
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 50; ++x) {
      cmyk.at(y, x, 3) = uint8_t(200 + x);
      for (int c = 0; c < 3; ++c)
        expected.bytes.push_back(uint8_t(cmyk.at(y, x, c) * cmyk.at(y, x, 3) / 255));
    }
  EXPECT_LT(mean_difference(decoded_whole(decode_jpeg, jpeg_bytes(cmyk), 40, 50), expected), 2.5);
}

// Every part of an image decoded on its own is the same as that part of the image decoded whole.
TEST(Jpeg, APartIsAPartOfTheWhole) {
  for (const bool progressive : {false, true})
    for (const bool subsampled : {false, true}) {
      const Bytes file =
          jpeg_bytes(waves(97, 131, 3), {.progressive = progressive, .subsampled = subsampled});
      const Raster whole = decoded_whole(decode_jpeg, file, 97, 131);
      for (int64_t index = 0; index < 60; ++index) {
        const ImageSize out{48, 48, 3};
        const View v = train_view(Augment::kRegion, 2, 0, index, out);
        Raster expected{48, 48, 3, Bytes(48 * 48 * 3)};
        draw(v, {whole.bytes.data(), 97, 131, 3, 131 * 3}, out, expected.bytes.data());
        const Region r = region_of(v, 97, 131, out);
        if (r.height >= 96 && r.width >= 96) continue;  // would be reduced by two
        ASSERT_EQ(decoded(decode_jpeg, file, v, out).bytes, expected.bytes) << index;
      }
    }
}

TEST(Jpeg, AReducedImageLooksTheSame) {
  const Raster image = waves(400, 600, 3);
  const Bytes file = jpeg_bytes(image);
  for (const auto& [size, bound] : {std::pair{150, 2.0}, {90, 2.5}, {40, 3.5}})  // by 2, 4 and 8
    for (int64_t index = 0; index < 8; ++index) {
      const ImageSize out{size, size, 3};
      const View v = index ? train_view(Augment::kRegion, 2, 0, index, out) : eval_view({0, 0, 3}, out);
      Raster expected{size, size, 3, Bytes(size_t(size * size * 3))};
      draw(v, {image.bytes.data(), 400, 600, 3, 1800}, out, expected.bytes.data());
      EXPECT_LT(mean_difference(decoded(decode_jpeg, file, v, out), expected), bound) << size << ' ' << index;
    }
}

// The file may be cut anywhere, even below what the view shows, or after the end marker of a thumbnail.
TEST(Jpeg, AFileThatEndsEarlyIsUnreadableWhateverIsAskedOfIt) {
  View top;
  top.kind = View::kRegion, top.area.fill(0.1f), top.log_aspect.fill(0.5f);
  for (const bool progressive : {false, true}) {
    Bytes file = jpeg_bytes(waves(200, 200, 3), {.progressive = progressive});
    const Bytes thumbnail{0xFF, 0xE1, 0, 6, 0xFF, 0xD8, 0xFF, 0xD9};
    file.insert(file.begin() + 2, thumbnail.begin(), thumbnail.end());
    EXPECT_FALSE(decoded(decode_jpeg, file, top, {32, 32, 3}).bytes.empty());
    for (size_t cut = 1; cut < file.size(); cut += cut < 700 ? 1 : 97)
      ASSERT_TRUE(decoded(decode_jpeg, Bytes(file.begin(), file.end() - int64_t(cut)), top, {32, 32, 3})
                      .bytes.empty())
          << cut;
    file.insert(file.end(), 100, 7);  // what follows the end does not matter
    EXPECT_FALSE(decoded(decode_jpeg, file, top, {32, 32, 3}).bytes.empty());
  }
}

TEST(Jpeg, DamageNeverCrashes) {
  const Bytes good = jpeg_bytes(waves(120, 90, 3), {.subsampled = true});
  int unreadable = 0;
  for (uint64_t trial = 0; trial < 400; ++trial) {
    Bytes file = good;
    const Draw draw{7, Purpose::kTest, trial};
    for (uint64_t i = 0; i < 1 + trial % 8; ++i)
      file[draw.bits(2 * i) % file.size()] = uint8_t(draw.bits(2 * i + 1));
    unreadable += decoded(decode_jpeg, file, eval_view({0, 0, 3}, {32, 32, 3}), {32, 32, 3}).bytes.empty();
  }
  EXPECT_GT(unreadable, 40);
  EXPECT_LT(unreadable, 400);
}

TEST(Jpeg, AnImageLargerThanMemoryIsUnreadable) {
  Bytes file = jpeg_bytes(waves(16, 16, 3));
  const Bytes frame{0xFF, 0xC0};
  const auto at = std::search(file.begin(), file.end(), frame.begin(), frame.end());
  ASSERT_NE(at, file.end());
  for (int i = 5; i < 9; ++i) *(at + i) = 0xFF;  // 65535 by 65535
  EXPECT_TRUE(decoded_whole(decode_jpeg, file, 16, 16).bytes.empty());
}

TEST(Png, DecodesEverySortToTheSamePixels) {
  const Raster color = waves(33, 21, 3), gray = waves(33, 21, 1);
  Raster alpha = waves(33, 21, 4), gray_alpha = waves(33, 21, 2), indices{33, 21, 1, noise(33 * 21)},
         palette = color;
  std::vector<png_color> colors(256);
  for (int i = 0; i < 256; ++i) colors[size_t(i)] = {uint8_t(i), uint8_t(255 - i), uint8_t(i / 2)};
  for (size_t i = 0; i < indices.bytes.size(); ++i)
    std::memcpy(&palette.bytes[3 * i], &colors[indices.bytes[i]], 3);
  Raster alpha_color{33, 21, 3, {}};
  for (size_t i = 0; i < 33 * 21; ++i)
    for (size_t c = 0; c < 3; ++c) alpha_color.bytes.push_back(alpha.bytes[4 * i + c]);
  const auto pixels = [](const Bytes& file) { return decoded_whole(decode_png, file, 33, 21).bytes; };
  EXPECT_EQ(pixels(png_bytes(color)), color.bytes);
  EXPECT_EQ(pixels(png_bytes(color, {.interlaced = true})), color.bytes);
  EXPECT_EQ(pixels(png_bytes(color, {.depth = 16})), color.bytes);
  EXPECT_EQ(pixels(png_bytes(gray)), gray_as_rgb(gray).bytes);
  EXPECT_EQ(pixels(png_bytes(gray, {.depth = 16})), gray_as_rgb(gray).bytes);
  EXPECT_EQ(pixels(png_bytes(gray_alpha)), gray_as_rgb(gray_alpha).bytes);
  EXPECT_EQ(pixels(png_bytes(alpha)), alpha_color.bytes);
  EXPECT_EQ(pixels(png_bytes(indices, {.palette = colors})), palette.bytes);
}

TEST(Png, TruncatedAndDamagedFilesAreUnreadable) {
  const Bytes good = png_bytes({40, 40, 3, noise(4800)});
  for (size_t n = 8; n + 30 < good.size(); n += 37)
    ASSERT_TRUE(
        decoded_whole(decode_png, Bytes(good.begin(), good.begin() + int64_t(n)), 40, 40).bytes.empty())
        << n;
  for (size_t at = 8; at + 30 < good.size(); at += 41) {
    Bytes file = good;
    file[at] ^= 0x5A;
    ASSERT_TRUE(decoded_whole(decode_png, file, 40, 40).bytes.empty()) << at;
  }
}

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

TEST(ImageFolder, OneLevelKeepsATenthOfEachClassWhateverTheSeed) {
  const TemporaryDirectory d;
  const Bytes png = png_bytes({2, 2, 3, Bytes(12)});
  for (int i = 0; i < 57; ++i) d.write(text("many/", i, ".png"), png);
  for (int i = 0; i < 3; ++i) d.write(text("few/", i, ".png"), png);
  d.write("single/0.png", png);
  std::vector<std::set<std::string>> tests;
  for (const uint64_t seed : {1, 2}) {
    const Split split = open_data("imagefolder:" + d.path(), seed);
    EXPECT_EQ(split.train->size(), 57 + 3 + 1 - 6);
    std::set<std::string> names, testing;
    std::vector<int> per_class(3);
    for (int64_t i = 0; i < split.train->size(); ++i) names.insert(split.train->name(i));
    for (int64_t i = 0; i < split.test->size(); ++i) {
      names.insert(split.test->name(i)), testing.insert(split.test->name(i));
      ++per_class[size_t(split.test->label(i))];
    }
    EXPECT_EQ(names.size(), 61u);  // no file is lost or in both
    EXPECT_EQ(per_class, (std::vector<int>{1, 5, 0}));
    tests.push_back(testing);
  }
  EXPECT_EQ(tests[0], tests[1]);
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

// Writes a split with two images per class.
void write_split(const TemporaryDirectory& d, const std::string& split, const Bytes& image) {
  for (const char* file : {"/cat/a.jpg", "/cat/b.jpg", "/dog/a.jpg", "/dog/b.jpg"})
    d.write(split + file, image);
}

TEST(ImageFolder, SplitsAreKnownByAnyOfTheirUsualNames) {
  const Bytes image = jpeg_bytes(waves(8, 8, 3));
  for (const char* train : {"train", "training", "Training"})
    for (const char* test : {"val", "valid", "validation", "test", "Testing"}) {
      const TemporaryDirectory d;
      write_split(d, train, image), write_split(d, test, image);
      const Split split = open_data("imagefolder:" + d.path() + "/", 0);
      EXPECT_EQ(split.train->classes(), (std::vector<std::string>{"cat", "dog"})) << train << ' ' << test;
      EXPECT_EQ(split.train->name(0), d / (train + std::string("/cat/a.jpg")));
      EXPECT_EQ(split.test->name(0), d / (test + std::string("/cat/a.jpg")));
      EXPECT_EQ(split.notes.size(), 2u);
    }
}

TEST(ImageFolder, SaysWhichDirectoryIsNotUsedAndRefusesTwoOfOneMeaning) {
  const Bytes image = jpeg_bytes(waves(8, 8, 3));
  const TemporaryDirectory d;
  for (const char* name : {"train", "valid", "test"}) write_split(d, name, image);
  const Split split = open_data("imagefolder:" + d.path(), 0);
  EXPECT_EQ(split.test->name(0), d / "valid/cat/a.jpg");
  expect_says(split.notes.at(0), {d.path(), "training on train/", "testing on valid/", "not used: test"});
  write_split(d, "Training", image);
  expect_says(message_of<BadFile>([&] { open_data("imagefolder:" + d.path(), 0); }),
              {"both train/ and Training/", "Rename or remove"});
}

TEST(ImageFolder, WarnsWhereClassesLookLikeSplits) {
  const Bytes image = jpeg_bytes(waves(8, 8, 3));
  const TemporaryDirectory d, nested;
  write_split(d, "part1", image), write_split(d, "part2", image);
  expect_says(open_data("imagefolder:" + d.path(), 0).notes.back(),
              {"warning", "part1, part2", "the same directories (cat, dog)", "train/CLASS"});
  nested.write("cat/old/a.jpg", image), nested.write("cat/new/a.jpg", image);
  nested.write("dog/old/a.jpg", image), nested.write("dog/a.jpg", image);
  EXPECT_EQ(open_data("imagefolder:" + nested.path(), 0).notes.size(), 1u);
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
