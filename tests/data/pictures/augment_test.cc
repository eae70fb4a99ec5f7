// Augmentation: its draws, and the policies of data sets.
#include "data/pictures/augment.h"

#include <algorithm>
#include <cmath>

#include "tests/support/data_files.h"

namespace skein::data {
namespace {

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
