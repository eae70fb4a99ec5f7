// Primal averaging: its three sequences, and what it is at the ends of its range.
#include "tests/optim/rule/fixtures.h"

namespace skein::optim {
namespace {

using namespace fixtures;

Options with(const std::string& x, const std::string& y) {
  Options o;
  o.set("gpa-x", x), o.set("gpa-y", y);
  return o;
}

// z, x and y as the paper has them, in double, with AdamW's direction at beta1 = beta2 = 0: the sign of g.
struct Sequences {
  double x, y, z, sum = 0, most = 0;
  explicit Sequences(double start) : x(start), y(start), z(start) {}
  void step(double g, double lr, std::optional<double> mu_x, double mu_y) {
    z -= lr * (g > 0 ? 1 : -1);
    most = std::max(most, lr);
    sum += most * most;
    const double keep = mu_x ? *mu_x : 1 - most * most / sum;
    x = keep * x + (1 - keep) * z;
    y = mu_y * x + (1 - mu_y) * z;
  }
};

TEST(Gpa, FollowsItsThreeSequences) {
  for (const char* kept : {"0.75", "schedule-free"}) {
    Options o = with(kept, "0.625");
    o.set("beta1", "0"), o.set("beta2", "0"), o.set("epsilon", "0");
    const Tensor y = Tensor::of<float>({1}, {2.f}), beside({1});
    const auto rule = make_rule("gpa", o, {.like = y, .segments = Segments::one(y)});
    Sequences s(2);
    for (int k = 0; k < 20; ++k) {
      const float g = std::sin(float(k) + 0.3f);
      const double lr = 0.05 * std::min(1.0, (k + 1) / 4.0);
      rule->step(y, Tensor::of<float>({1}, {g}), lr);
      s.step(g, lr, kept[0] == '0' ? std::optional(0.75) : std::nullopt, 0.625);
      EXPECT_NEAR(y.item(), s.y, 2e-6) << kept << " step " << k;
      ASSERT_TRUE(rule->evaluated_beside(beside));
      EXPECT_NEAR(y.item() + beside.item(), s.x, 2e-6) << kept << " step " << k;
    }
  }
}

// With mu_x = 0 nothing is averaged.
TEST(Gpa, WithoutAveragingIsAdamW) {
  const Tensor a = Tensor::zeros({100}), b = Tensor::zeros({100}), g({100}), beside({100});
  const auto gpa =
      make_rule("gpa", with("0", "0.7"), {.like = a, .segments = Segments::one(a, 1), .weight_decay = 0.1f});
  const auto adamw =
      make_rule("adamw", {}, {.like = b, .segments = Segments::one(b, 1), .weight_decay = 0.1f});
  for (uint64_t k = 0; k < 20; ++k) {
    fill_normal(g, {.seed = 1, .purpose = Purpose::kTest, .step = k}, 0, 1);
    gpa->step(a, g, 0.01f), adamw->step(b, g, 0.01f);
  }
  gpa->evaluated_beside(beside);
  EXPECT_EQ(norm(beside), 0);
  axpy(a, -1.f, b);
  EXPECT_LT(norm(a), 1e-6 * norm(b));
}

// The average moves with whatever moves y.
TEST(Gpa, AveragesTravelWithTheModel) {
  const Tensor y = Tensor::zeros({64}), g({64}), beside({64}), later({64});
  fill_normal(g, {.seed = 1, .purpose = Purpose::kTest}, 0, 1);
  const auto rule = make_rule("gpa", with("0.5", "0.7"), {.like = y, .segments = Segments::one(y)});
  for (int k = 0; k < 3; ++k) rule->step(y, g, 0.01f);
  rule->evaluated_beside(beside);
  fill(y, 5.f);  // a center's model is pulled
  rule->evaluated_beside(later);
  axpy(later, -1.f, beside);
  EXPECT_EQ(norm(later), 0);
}

TEST(Gpa, RefusesAnAverageThatNeverMoves) {
  const Tensor x = Tensor::zeros({1});
  for (const char* kept : {"1", "-0.5", "half"})
    EXPECT_THROW(make_rule("gpa", with(kept, "0.7"), {.like = x, .segments = Segments::one(x)}), BadOption)
        << kept;
}

}  // namespace
}  // namespace skein::optim
