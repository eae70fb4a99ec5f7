// Resizing, views and policies, each against a slow reference.
#include "data/pictures/augment.h"

#include <algorithm>
#include <cmath>

#include "data/pictures/view.h"
#include "tests/support/data_files.h"

namespace skein::data {
namespace {

using Bytes = std::vector<uint8_t>;

Pixels pixels_of(const Raster& r) {
  return {r.bytes.data(), r.height, r.width, r.channels, int64_t(r.width) * r.channels};
}

// A triangle of half-width max(1, scale) about each output pixel's center, over the pixels there are.
double tap(double center, int pixel, double scale) {
  return std::max(0.0, 1 - std::abs(pixel + 0.5 - center) / std::max(scale, 1.0));
}
double resampled(const Raster& r, const Box& box, const ImageSize& out, int y, int x, int c) {
  const double sy = box.height / out.height, sx = box.width / out.width;
  const double cy = box.top + (y + 0.5) * sy, cx = box.left + (x + 0.5) * sx;
  double sum = 0, weights = 0;
  for (int j = 0; j < r.height; ++j)
    for (int i = 0; i < r.width; ++i) {
      const double w = tap(cy, j, sy) * tap(cx, i, sx);
      sum += w * r.at(j, i, c), weights += w;
    }
  return sum / weights;
}

TEST(Resize, AgreesWithASlowReference) {
  for (const int channels : {1, 3, 4})
    for (const auto& [h, w, box, out_h, out_w] : std::vector<std::tuple<int, int, Box, int, int>>{
             {23, 31, {0, 0, 23, 31}, 7, 9},          // reduce
             {8, 5, {0, 0, 8, 5}, 19, 13},            // enlarge
             {30, 20, {3, 4, 20, 10}, 11, 17},        // a part, both
             {16, 16, {1.25, 2.5, 9.7, 11.3}, 8, 8},  // off the pixel grid
             {40, 3, {0, 0, 40, 3}, 1, 1},
             {1, 1, {0, 0, 1, 1}, 3, 2}}) {
      const Raster from{h, w, channels, noise(size_t(h * w * channels))};
      const ImageSize out{out_h, out_w, channels};
      for (const bool mirror : {false, true}) {
        Raster to{out_h, out_w, channels, Bytes(size_t(out_h * out_w * channels))};
        resize(pixels_of(from), box, mirror, out, to.bytes.data());
        for (int y = 0; y < out_h; ++y)
          for (int x = 0; x < out_w; ++x)
            for (int c = 0; c < channels; ++c)
              ASSERT_NEAR(to.at(y, mirror ? out_w - 1 - x : x, c), resampled(from, box, out, y, x, c), 0.51)
                  << h << 'x' << w << " to " << out_h << 'x' << out_w << " at " << y << ' ' << x << ' ' << c;
      }
    }
}

TEST(Resize, KeepsAConstantAndTheIdentity) {
  const Raster white{37, 53, 3, Bytes(37 * 53 * 3, 255)};
  Bytes small(11 * 13 * 3);
  resize(pixels_of(white), {0, 0, 37, 53}, false, {11, 13, 3}, small.data());
  EXPECT_EQ(small, Bytes(11 * 13 * 3, 255));
  const Raster any{9, 7, 3, noise(9 * 7 * 3)};
  Bytes same(9 * 7 * 3);
  resize(pixels_of(any), {0, 0, 9, 7}, false, {9, 7, 3}, same.data());
  EXPECT_EQ(same, any.bytes);
}

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

TEST(Augment, IsAPureFunctionThatDiffersByEpochIndexAndSeed) {
  const ImageSize out{224, 224, 3};
  const auto key = [&](uint64_t seed, int64_t epoch, int64_t index) {
    const View v = train_view(Augment::kRegion, seed, epoch, index, out);
    return std::tuple(v.area, v.log_aspect, v.at_y, v.at_x);
  };
  EXPECT_EQ(key(1, 2, 3), key(1, 2, 3));
  EXPECT_NE(key(1, 2, 3), key(1, 2, 4));
  EXPECT_NE(key(1, 2, 3), key(1, 3, 3));
  EXPECT_NE(key(1, 2, 3), key(2, 2, 3));
  EXPECT_NE(key(1, 2, 3), key(1, 2, 3 + (int64_t(1) << 29)));
}

TEST(Augment, DrawsTheWholeRangeEvenly) {
  constexpr int64_t kSamples = 9000;
  std::vector<int> offsets(81);
  int mirrored = 0, regions_mirrored = 0;
  double least = 1, most = 0, aspect = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const View s = train_view(Augment::kShift, 4, 0, i, {32, 32, 3});
    ASSERT_TRUE(s.pad == 4 && s.shift_y >= 0 && s.shift_y <= 8 && s.shift_x >= 0 && s.shift_x <= 8);
    ++offsets[size_t(s.shift_y * 9 + s.shift_x)];
    mirrored += s.mirror;
    const View r = train_view(Augment::kRegion, 4, 0, i, {32, 32, 3});
    regions_mirrored += r.mirror;
    for (const float a : r.area) least = std::min(least, double(a)), most = std::max(most, double(a));
    for (const float a : r.log_aspect) aspect = std::max(aspect, std::abs(double(a)));
    ASSERT_TRUE(r.at_y >= 0 && r.at_y < 1 && r.at_x >= 0 && r.at_x < 1);
  }
  double chi2 = 0;
  for (const int n : offsets) chi2 += (n - kSamples / 81.) * (n - kSamples / 81.) / (kSamples / 81.);
  EXPECT_LT(chi2, 150);  // 80 degrees of freedom: beyond 150 lies 4e-6
  EXPECT_NEAR(mirrored, kSamples / 2, 250);
  EXPECT_NEAR(regions_mirrored, kSamples / 2, 250);
  EXPECT_NEAR(least, 0.08, 1e-4);
  EXPECT_NEAR(most, 1, 1e-4);
  EXPECT_NEAR(aspect, std::log(4 / 3.), 1e-4);
}

TEST(Augment, PoliciesFollowTheData) {
  EXPECT_EQ(default_augment("imagefolder", {0, 0, 3}), Augment::kRegion);
  EXPECT_EQ(default_augment("cifar10", {32, 32, 3}), Augment::kShift);
  EXPECT_EQ(default_augment("mnist", {28, 28, 1}), Augment::kNone);
  EXPECT_EQ(default_augment("fashion-mnist", {28, 28, 1}), Augment::kMirror);
  EXPECT_EQ(train_view(Augment::kShift, 0, 0, 0, {28, 28, 1}).pad, 2);
  EXPECT_EQ(train_view(Augment::kMirror, 0, 0, 0, {28, 28, 1}).kind, View::kWhole);
  EXPECT_EQ(eval_view({28, 28, 1}, {28, 28, 1}).kind, View::kWhole);
  const char* names[] = {"none", "mirror", "shift", "region"};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(parse_augment(names[i]), Augment(i));
  expect_says(message_of<BadOption>([] { parse_augment("miror"); }),
              {"--augment miror", "did you mean mirror?", "region"});
}

}  // namespace
}  // namespace skein::data
