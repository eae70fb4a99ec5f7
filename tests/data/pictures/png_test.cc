// PNG: every sort is decoded, damage is noticed.
#include "data/pictures/png.h"

#include <cstring>

#include "tests/support/pictures.h"

namespace skein::data {
namespace {

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

}  // namespace
}  // namespace skein::data
