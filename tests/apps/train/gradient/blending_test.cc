// Blending: the partners, shares and boxes of a step are a function of its seed and number alone.
#include "apps/train/gradient/blending.h"

#include "tests/support/testing.h"

namespace skein {
namespace {

TEST(Blending, IsAFunctionOfSeedAndStepAndTheSameOnAllWorkersButForPartners) {
  const apps::Blending both{0.4, 1};
  bool partners_differ = false;
  for (int64_t k = 0; k < 50; ++k) {
    const Blend a = apps::draw_blend(both, 7, k, 0, 32, 28, 20),
                b = apps::draw_blend(both, 7, k, 0, 32, 28, 20),
                c = apps::draw_blend(both, 7, k, 1, 32, 28, 20);
    EXPECT_EQ(a.share, b.share);
    EXPECT_EQ(a.shift, b.shift);
    EXPECT_EQ(a.share, c.share);
    EXPECT_EQ(a.left, c.left);
    partners_differ = partners_differ || a.shift != c.shift;
  }
  EXPECT_TRUE(partners_differ);
}

TEST(Blending, SharesAreOfTheBetaDistributionAndBoxesHaveTheirArea) {
  double sum = 0, squares = 0, boxes = 0;
  constexpr int kDraws = 4000;
  for (int64_t k = 0; k < kDraws; ++k) {
    const Blend m = apps::draw_blend({0.4, 0}, 3, k, 0, 8, 16, 16),
                b = apps::draw_blend({0.4, 1}, 3, k, 0, 8, 16, 16);
    EXPECT_FALSE(m.boxed());
    EXPECT_GE(m.shift, 1);
    EXPECT_LE(m.shift, 7);
    sum += m.share, squares += double(m.share) * m.share;
    boxes += b.boxed();
    if (b.boxed()) { EXPECT_FLOAT_EQ(b.share, 1 - float((b.bottom - b.top) * (b.right - b.left)) / 256); }
  }
  const double mean = sum / kDraws, variance = squares / kDraws - mean * mean;
  EXPECT_NEAR(mean, 0.5, 0.02);
  EXPECT_NEAR(variance, 1 / (4 * (2 * 0.4 + 1)), 0.01);  // of Beta(a, a): 1 / (4 (2a + 1))
  EXPECT_NEAR(boxes / kDraws, 0.5, 0.05);                // some boxes are empty
}

TEST(Blending, OffAndAloneThereIsNoPartner) {
  EXPECT_EQ(apps::draw_blend({}, 1, 1, 0, 32, 8, 8).shift, 0);
  EXPECT_EQ(apps::draw_blend({1, 1}, 1, 1, 0, 1, 8, 8).shift, 0);
}

}  // namespace
}  // namespace skein
