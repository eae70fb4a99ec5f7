// Sharpness-aware minimization: where the gradient is taken.
#include "optim/uphill.h"
#include "tests/support/trainee.h"

namespace skein {
namespace {

using namespace trainee;

Tensor random(uint64_t step) {
  Tensor t({1000});
  fill_normal(t, {.seed = 7, .purpose = Purpose::kTest, .step = step}, 0, 1);
  return t;
}

TEST(Ascent, GoesSoFarAlongTheGradientAndComesBackBitForBit) {
  for (const bool narrow : {false, true}) {
    const Tensor x = random(0), g = random(1), before = x.clone();
    if (narrow) keep_narrow(x, kBF16);
    const Ascent ascent(x, 0.05f);
    ascent.up(g);
    const Tensor off = x.clone();
    axpy(off, -1.f, before);
    EXPECT_NEAR(norm(off), 0.05, 1e-6);
    EXPECT_NEAR(dot(off, g), 0.05 * norm(g), 1e-4);
    if (narrow) { EXPECT_TRUE(narrow_is_current(x)); }
    ascent.down();
    EXPECT_EQ(0, std::memcmp(x.raw(), before.raw(), size_t(x.bytes())));
  }
}

TEST(Ascent, StaysWhereTheGradientIsZero) {
  const Tensor x = random(0), before = x.clone();
  const Ascent ascent(x, 0.05f);
  ascent.up(Tensor::zeros({1000}));
  EXPECT_EQ(0, std::memcmp(x.raw(), before.raw(), size_t(x.bytes())));
}

TEST(Uphill, ComesBackFromAGradientThatFails) {
  const Tensor x = random(0), g = random(1), buffers = random(2);
  const Tensor x_before = x.clone(), buffers_before = buffers.clone();
  const optim::Uphill uphill(x, g, buffers, 0.05f);
  const auto fail = [&] {
    EXPECT_NE(0, std::memcmp(x.raw(), x_before.raw(), size_t(x.bytes())));
    fill(buffers, 1.f);
    throw BadFile("no gradient");
  };
  EXPECT_THROW(uphill.take(fail), BadFile);
  EXPECT_EQ(0, std::memcmp(x.raw(), x_before.raw(), size_t(x.bytes())));
  EXPECT_EQ(0, std::memcmp(buffers.raw(), buffers_before.raw(), size_t(x.bytes())));
}

// The problem's gradient is c (x - a): a step is -lr c (x + rho g / |g| - a).
TEST(Sam, StepsByTheGradientUphill) {
  const Problem p{.lr = 0.1f, .curvature_spread = 1, .optimizer = "sam", .optimizer_flags = "--sam-rho 0.5"};
  Trainee t(p, "sgd", {});
  std::vector<double> x(size_t(p.size), 0.0), g(x);
  for (int64_t k = 0; k < 3; ++k) {
    t.step(k);
    double squares = 0;
    const auto curvature = [&](size_t i) { return 1 + (double(i) / double(p.size) - 0.5); };
    for (size_t i = 0; i < x.size(); ++i) {
      g[i] = curvature(i) * (x[i] - 1 - double(i) / 16);
      squares += g[i] * g[i];
    }
    for (size_t i = 0; i < x.size(); ++i)
      x[i] -= 0.1 * curvature(i) * (x[i] + 0.5 * g[i] / std::sqrt(squares) - 1 - double(i) / 16);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(t.x.data<float>()[i], x[i], 1e-5) << "step " << k;
  }
}

TEST(Sam, WithoutRadiusIsSgdBitForBit) {
  const Problem p{.momentum = 0.9f, .noise = 1};
  Problem q = p;
  q.optimizer = "sam", q.optimizer_flags = "--sam-rho 0";
  Trainee sgd(p, "sgd", {}), sam(q, "sgd", {});
  for (int64_t k = 0; k < 5; ++k) {
    sgd.step(k), sam.step(k);
    EXPECT_EQ(values(sgd.x), values(sam.x));
  }
}

}  // namespace
}  // namespace skein
