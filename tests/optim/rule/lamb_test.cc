// LAMB against timm's Lamb in float64, and what its ratio does.
#include "tests/optim/rule/fixtures.h"

namespace skein::optim {
namespace {

using namespace fixtures;

TEST(Lamb, FollowsTimm) { EXPECT_EQ(follow_fixtures("lamb", 1e-6), 2); }

// A segment that decays moves by lr times its own norm, whatever the size of its gradient.
TEST(Lamb, TheStepOfASegmentIsAsLongAsItsWeights) {
  const int64_t n = 20000;  // several chunks
  for (const float size : {1e-3f, 1e3f}) {
    const Tensor x({n}), g({n});
    fill_normal(x, {.seed = 1, .purpose = Purpose::kTest}, 0, 2);
    fill_normal(g, {.seed = 2, .purpose = Purpose::kTest}, 0, size);
    const Tensor before = x.clone();
    const auto rule =
        make_rule("lamb", {}, {.like = x, .segments = Segments::one(x, 1), .weight_decay = 0.1f});
    rule->step(x, g, 0.01f);
    axpy(x, -1.f, before);
    EXPECT_NEAR(norm(x) / norm(before), 0.01, 1e-5);
  }
}

// Segments without decay are left to Adam's direction, and so are weights that are all zero.
TEST(Lamb, AZeroSegmentCanBegin) {
  const Tensor x = Tensor::zeros({64}), g = Tensor::zeros({64});
  fill(g, 3.f);
  const auto rule = make_rule("lamb", {}, {.like = x, .segments = Segments::one(x, 1), .weight_decay = 0.1f});
  rule->step(x, g, 0.5f);
  EXPECT_NEAR(x.data<float>()[0], -0.5, 1e-5);
}

}  // namespace
}  // namespace skein::optim
