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

// timm's always_adapt is off: without decay there is no ratio.
TEST(Lamb, WithoutWeightDecayItIsAdam) {
  const int64_t n = 100;
  const Tensor x({n}), g({n});
  fill_normal(x, {.seed = 1, .purpose = Purpose::kTest}, 0, 2);
  fill_normal(g, {.seed = 2, .purpose = Purpose::kTest}, 0, 1);
  const Tensor y = x.clone();
  const RuleTask task{.like = x, .segments = Segments::one(x, 1), .weight_decay = 0};
  Options same_epsilon;
  same_epsilon.set("epsilon", "1e-6");
  const auto lamb = make_rule("lamb", {}, task), adamw = make_rule("adamw", same_epsilon, task);
  for (int k = 0; k < 5; ++k) lamb->step(x, g, 0.01f), adamw->step(y, g, 0.01f);
  for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(x.data<float>()[i], y.data<float>()[i], 1e-6) << i;
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
