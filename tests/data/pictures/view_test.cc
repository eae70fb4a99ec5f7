// Views: mirrored, shifted, cropped and centered.
#include "data/pictures/view.h"

#include <algorithm>
#include <cmath>

#include "data/pictures/augment.h"
#include "tests/support/pictures.h"

namespace skein::data {
namespace {

TEST(View, MirrorAndShiftMoveWholePixels) {
  for (const int channels : {1, 3}) {
    const Raster from{6, 9, channels, noise(size_t(54 * channels))};
    for (int pad : {0, 2, 4, 12})
      for (int sy = 0; sy <= 2 * pad; sy += std::max(1, pad / 2))
        for (int sx = 0; sx <= 2 * pad; sx += std::max(1, pad / 2))
          for (const bool mirror : {false, true}) {
            View v;
            v.kind = pad ? View::kShift : View::kWhole;
            v.mirror = mirror, v.pad = pad, v.shift_y = sy, v.shift_x = sx;
            Raster to{6, 9, channels, Bytes(from.bytes.size(), 77)};
            draw(v, pixels_of(from), {6, 9, channels}, to.bytes.data());
            for (int y = 0; y < 6; ++y)
              for (int x = 0; x < 9; ++x)
                for (int c = 0; c < channels; ++c) {
                  const int j = y + sy - pad, i = (mirror ? 8 - x : x) + sx - pad;
                  const bool inside = j >= 0 && j < 6 && i >= 0 && i < 9;
                  ASSERT_EQ(to.at(y, x, c), inside ? from.at(j, i, c) : 0) << pad << ' ' << sy << ' ' << sx;
                }
          }
  }
}

TEST(View, ShiftOfAnotherSizeResizesFirst) {
  const Raster from{20, 30, 3, noise(1800)};
  View v;
  Raster whole{10, 10, 3, Bytes(300)}, shifted = whole;
  draw(v, pixels_of(from), {10, 10, 3}, whole.bytes.data());
  v.kind = View::kShift, v.pad = 2, v.shift_y = 3, v.shift_x = 0;
  draw(v, pixels_of(from), {10, 10, 3}, shifted.bytes.data());
  for (int y = 0; y < 9; ++y)
    for (int x = 2; x < 10; ++x) ASSERT_EQ(shifted.at(y, x, 1), whole.at(y + 1, x - 2, 1));
}

// torchvision's RandomResizedCrop resizes only the crop; pixels beyond it do not matter.
TEST(View, RegionCropsThenResizes) {
  const ImageSize out{12, 12, 3};
  for (int64_t index = 0; index < 40; ++index) {
    const int height = 30 + int(index), width = 75 - int(index);
    const Raster from{height, width, 3, noise(size_t(height * width * 3), uint64_t(index))};
    const View v = train_view(Augment::kRegion, 1, 0, index, out);
    Region r;
    for (size_t t = 0; t < 10 && r.height == 0; ++t) {
      const double area = double(v.area[t]) * height * width, aspect = std::exp(double(v.log_aspect[t]));
      const int w = int(std::nearbyint(std::sqrt(area * aspect))),
                h = int(std::nearbyint(std::sqrt(area / aspect)));
      if (w > 0 && h > 0 && w <= width && h <= height) r.height = h, r.width = w;
    }
    ASSERT_GT(r.height, 0);
    r.top = int(v.at_y * float(height - r.height + 1)), r.left = int(v.at_x * float(width - r.width + 1));
    Raster crop{r.height, r.width, 3, {}}, to{12, 12, 3, Bytes(432)};
    for (int y = 0; y < r.height; ++y)
      for (int x = 0; x < r.width; ++x)
        for (int c = 0; c < 3; ++c) crop.bytes.push_back(from.at(r.top + y, r.left + x, c));
    draw(v, pixels_of(from), out, to.bytes.data());
    const Box all{0, 0, double(r.height), double(r.width)};
    for (int y = 0; y < 12; ++y)
      for (int x = 0; x < 12; ++x)
        ASSERT_NEAR(to.at(y, v.mirror ? 11 - x : x, 2), resampled(crop, all, out, y, x, 2), 0.51) << index;
  }
}

TEST(View, RegionThatNeverFitsIsTheCenterOfTheNearestAspect) {
  View v;
  v.kind = View::kRegion;
  v.area.fill(1.f), v.log_aspect.fill(0.f);
  Region r = region_of(v, 40, 400, {8, 8, 3});
  EXPECT_EQ((std::array{r.top, r.left, r.height, r.width}), (std::array{0, 173, 40, 53}));
  r = region_of(v, 400, 40, {8, 8, 3});
  EXPECT_EQ((std::array{r.top, r.left, r.height, r.width}), (std::array{173, 0, 53, 40}));
}

TEST(View, CenterIsResizeThenCrop) {
  View v = eval_view({0, 0, 3}, {224, 224, 3});
  EXPECT_EQ(v.resize_to, 256);
  const Region r = region_of(v, 512, 1024, {224, 224, 3});
  EXPECT_EQ(r.box, (Box{32, 288, 448, 448}));
  const Raster from{60, 90, 3, noise(60 * 90 * 3)};
  const ImageSize out{14, 14, 3};
  v = eval_view({0, 0, 3}, out);
  EXPECT_EQ(v.resize_to, 16);
  Raster to{14, 14, 3, Bytes(14 * 14 * 3)};
  draw(v, pixels_of(from), out, to.bytes.data());
  const ImageSize resized{16, 24, 3};  // 60 and 90 pixels by 3.75
  for (int y = 0; y < 14; ++y)
    for (int x = 0; x < 14; ++x)
      ASSERT_NEAR(to.at(y, x, 0), resampled(from, {0, 0, 60, 90}, resized, y + 1, x + 5, 0), 0.51);
}

TEST(View, CenterStaysInsideWhateverTheShape) {
  for (const auto& [h, w] : {std::pair{1, 1}, {3, 500}, {500, 3}, {17, 19}})
    for (const ImageSize out : {ImageSize{8, 8, 3}, ImageSize{8, 24, 3}}) {
      const Region r = region_of(eval_view({0, 0, 3}, out), h, w, out);
      EXPECT_GE(r.box.top, -1e-9);
      EXPECT_GE(r.box.left, -1e-9);
      EXPECT_LE(r.box.top + r.box.height, h + 1e-9);
      EXPECT_LE(r.box.left + r.box.width, w + 1e-9);
      EXPECT_TRUE(r.top >= 0 && r.left >= 0 && r.top + r.height <= h && r.left + r.width <= w);
    }
}

}  // namespace
}  // namespace skein::data
