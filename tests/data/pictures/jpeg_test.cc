// JPEG: every sort is decoded, damage is noticed.
#include "data/pictures/jpeg.h"

#include <algorithm>
#include <cmath>

#include "data/loader.h"
#include "data/pictures/augment.h"
#include "tests/support/pictures.h"

namespace skein::data {
namespace {

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

}  // namespace
}  // namespace skein::data
