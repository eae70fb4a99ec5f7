// Color jitter against torchvision's definitions, and how its factors are drawn.
#include "data/pictures/jitter.h"

#include <algorithm>
#include <set>

#include "data/loader.h"
#include "data/pictures/augment.h"
#include "tests/support/data_files.h"
#include "tests/support/numbers/difference.h"

namespace skein::data {
namespace {

using Color = View::Color;

View with(std::initializer_list<Color> colors) {
  View v;
  std::copy(colors.begin(), colors.end(), v.colors.begin());
  return v;
}
Bytes changed(const Raster& r, const View& v) {
  Bytes b = r.bytes;
  jitter_colors(v, {r.height, r.width, r.channels}, b.data());
  return b;
}

// In real numbers: x <- other + factor (x - other), where other is black, the image's mean gray
// or the pixel's gray.
std::vector<double> reference(const Raster& r, const Color& c) {
  const auto gray = [&](size_t pixel) {
    const uint8_t* p = &r.bytes[3 * pixel];
    return 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
  };
  const size_t n = r.bytes.size() / 3;
  double mean = 0;
  for (size_t i = 0; i < n; ++i) mean += gray(i) / double(n);
  std::vector<double> all;
  for (size_t i = 0; i < 3 * n; ++i) {
    const double other = c.what == Color::kBrightness ? 0 : c.what == Color::kContrast ? mean : gray(i / 3);
    all.push_back(std::clamp(other + double(c.factor) * (r.bytes[i] - other), 0.0, 255.0));
  }
  return all;
}

TEST(Jitter, FollowsItsDefinitionsToOneLevel) {
  const Raster image{20, 30, 3, noise(1800)};
  for (const Color::What what : {Color::kBrightness, Color::kContrast, Color::kSaturation})
    for (const float factor : {0.f, 0.25f, 0.6f, 0.999f, 1.3f, 2.f}) {
      const Bytes got = changed(image, with({{what, factor}}));
      const auto expected = reference(image, {what, factor});
      // The product truncates instead of rounding, and its gray is a whole number.
      EXPECT_LE(differences::largest_difference(got, expected), 1 + 0.5 * std::abs(1 - factor) + 1e-3)
          << what << ' ' << factor;
    }
}

// The results of Pillow 9.4's ImageEnhance for the row of pixels (10, 200, 90), (255, 0, 31), (7, 8,
// 9), (128, 128, 250).
TEST(Jitter, IsPillowsToTheBit) {
  const Raster image{1, 4, 3, {10, 200, 90, 255, 0, 31, 7, 8, 9, 128, 128, 250}};
  EXPECT_EQ(changed(image, with({{Color::kBrightness, 1.37f}})),
            (Bytes{13, 255, 123, 255, 0, 42, 9, 10, 12, 175, 175, 255}));
  EXPECT_EQ(changed(image, with({{Color::kContrast, 0.61f}})),
            (Bytes{41, 157, 90, 190, 35, 54, 39, 39, 40, 113, 113, 187}));
  EXPECT_EQ(changed(image, with({{Color::kSaturation, 1.8f}})),
            (Bytes{0, 255, 57, 255, 0, 0, 6, 8, 9, 116, 116, 255}));
  EXPECT_EQ(changed(image,
                    with({{Color::kSaturation, 0.3f}, {Color::kBrightness, 0.9f}, {Color::kContrast, 1.4f}})),
            (Bytes{85, 157, 116, 133, 38, 49, 0, 0, 0, 140, 140, 186}));
}

TEST(Jitter, OfOneChannelHasNoSaturation) {
  const Raster gray{9, 7, 1, noise(63)};
  EXPECT_EQ(changed(gray, with({{Color::kSaturation, 0.1f}})), gray.bytes);
  EXPECT_NE(changed(gray, with({{Color::kContrast, 0.5f}})), gray.bytes);
  EXPECT_EQ(changed(gray, with({{Color::kBrightness, 0.f}})), Bytes(63, 0));
}

TEST(Jitter, FactorsFillTheIntervalIndependentlyInEveryOrder) {
  std::set<std::string> orders;
  double sum[3] = {}, low[3] = {9, 9, 9}, high[3] = {}, product = 0;
  constexpr int kSamples = 3000;
  for (int64_t i = 0; i < kSamples; ++i) {
    View v;
    draw_colors(v, 0.4, 5, 2, i);
    std::string order;
    double by[3] = {};
    for (const Color& c : v.colors) order += char('0' + c.what), by[c.what] = c.factor;
    orders.insert(order);
    for (int k = 0; k < 3; ++k)
      sum[k] += by[k], low[k] = std::min(low[k], by[k]), high[k] = std::max(high[k], by[k]);
    product += (by[0] - 1) * (by[1] - 1) + (by[1] - 1) * (by[2] - 1);
    View again, other;
    draw_colors(again, 0.4, 5, 2, i), draw_colors(other, 0.4, 5, 3, i);
    ASSERT_EQ(again.colors[0].factor, v.colors[0].factor);
    ASSERT_NE(other.colors[0].factor, v.colors[0].factor);
  }
  EXPECT_EQ(orders.size(), 6u);
  EXPECT_EQ(orders.count("012") + orders.count("210"), 2u);
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(sum[k] / kSamples, 1, 0.02) << k;
    EXPECT_NEAR(low[k], 0.6, 0.01) << k;
    EXPECT_NEAR(high[k], 1.4, 0.01) << k;
  }
  EXPECT_NEAR(product / kSamples, 0, 0.01);
  View none;
  draw_colors(none, 0, 5, 2, 1);
  EXPECT_FALSE(none.is_jittered());
}

// The loader applies it after the crop, whatever the source.
TEST(Jitter, IsTheLastThingTheLoaderDoes) {
  const Split split = open_data("synthetic:8x8x3,train=6", 5);
  const ImageSize out{8, 8, 3};
  const auto view = [&](int64_t index) {
    View v = train_view(Augment::kShift, 1, 0, index, out);
    draw_colors(v, 0.8, 1, 0, index);
    return v;
  };
  Loader loader(*split.train,
                {[](int64_t) { return int64_t(6); }, [](int64_t, int64_t row) { return row; },
                 [&](int64_t, int64_t, int64_t index) { return view(index); }},
                out, 0, 1, kCpu, 2);
  const Batch b = loader.next();
  for (int64_t i = 0; i < 6; ++i) {
    Bytes expected(192);
    ASSERT_TRUE(split.train->read(i, view(i), out, expected.data()));
    const Bytes plain = expected;
    jitter_colors(view(i), out, expected.data());
    EXPECT_NE(expected, plain);
    const uint8_t* got = b.images.data<uint8_t>() + i * 192;
    EXPECT_EQ(Bytes(got, got + 192), expected) << i;
  }
  EXPECT_GT(loader.seconds().jitter, 0);
}

}  // namespace
}  // namespace skein::data
