// AdamW against torch.optim.AdamW in float64, and by hand.
#include "tests/optim/rule/fixtures.h"

namespace skein::optim {
namespace {

using namespace fixtures;

TEST(AdamW, FollowsTorch) { EXPECT_EQ(follow_fixtures("adamw", 1e-6), 3); }

// Gradients 2, 2, -1 at rate 0.1 with beta1 = beta2 = 0.5 and no decay: m = 1, 1.5, 0.25 and v = 2, 3, 2,
// which divided by 1 - 0.5^t are 2, 2, 2/7 and 4, 4, 16/7.
TEST(AdamW, TraceByHand) {
  const Tensor x = Tensor::zeros({1});
  Options o;
  o.set("beta1", "0.5"), o.set("beta2", "0.5"), o.set("epsilon", "0");
  const auto rule = make_rule("adamw", o, {.like = x, .segments = Segments::one(x)});
  double want = 0;
  for (const auto& [g, u] : {std::pair(2.f, 1.0), {2.f, 1.0}, {-1.f, 2.0 / 7 / std::sqrt(16.0 / 7)}}) {
    rule->step(x, Tensor::of<float>({1}, {g}), 0.1f);
    want -= 0.1 * u;
    EXPECT_NEAR(x.item(), want, 1e-7);
  }
}

// Decay is the rate's part of the point where the gradient was, and does not enter the moments.
TEST(AdamW, DecayIsDecoupledAndTakenWhereTheGradientWas) {
  const Tensor x = Tensor::zeros({1}), g = Tensor::zeros({1}), at = Tensor::of<float>({1}, {3});
  const auto rule =
      make_rule("adamw", {}, {.like = x, .segments = Segments::one(x, 1), .weight_decay = 0.5f});
  for (int k = 1; k <= 3; ++k) {
    rule->step(x, g, at, 0.1f);
    EXPECT_NEAR(x.item(), -0.15 * k, 1e-6);
  }
}

TEST(AdamW, RefusesMeansThatForgetNothing) {
  const Tensor x = Tensor::zeros({1});
  for (const char* flag : {"beta1", "beta2"}) {
    Options o;
    o.set(flag, "1");
    EXPECT_THROW(make_rule("adamw", o, {.like = x, .segments = Segments::one(x)}), BadOption);
  }
}

}  // namespace
}  // namespace skein::optim
