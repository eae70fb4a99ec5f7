// GEM: its trace to the digit, its formulas, and that it is stable where Downpour is not.
#include <cmath>
#include <numbers>

#include "engine/vectors/gem.h"
#include "tests/support/servers.h"

namespace skein {
namespace {

using namespace trainee;

TEST(Gem, FollowsItsTrace) {
  Driven d({.size = 1}, "gem", {}, 2);
  const double theta[] = {.1, .2, .2, .46, .46, .678}, pi[] = {1, .5, 0, 1.4444444, 0, 1.4155844};
  float before = 0;
  for (int t = 0; t < 6; ++t) {
    const float after = d.step(t % 2);
    EXPECT_NEAR(after, theta[t], 1e-6) << t;
    EXPECT_NEAR((after - before) / (-0.1 * d[t % 2].g.item()), pi[t], 3e-6) << t;
    before = after;
  }
}

// Where kappa is huge pi is at its ceiling, 5. Rates that are 2^-8 and 5 * 2^-8 round 5 (eta g) and (5
// eta) g alike.
TEST(Gem, WithPiAtItsCeilingIsDownpourAtFiveTimesTheRateBitForBit) {
  const Problem slow{.lr = 0x1p-8f, .noise = 1, .curvature_spread = 1},
      fast{.lr = 0x5p-8f, .noise = 1, .curvature_spread = 1};
  for (int n : {1, 2, 3, 8, 17}) {
    Driven gem(slow, "gem", options({{"kappa", "1e30"}}), n);
    Driven downpour(fast, "downpour", options({{"tau", "1"}}), n);
    for (int t = 0; t < 6 * n; ++t) {
      const int w = t * 7 % n;
      gem.step(w), downpour.step(w);
      ASSERT_EQ(values(gem[w].x), values(downpour[w].x)) << n << ' ' << t;
    }
  }
}

// Under a constant gradient n + 1 commits share one |m|.
TEST(Gem, MeanPiIsTenOverNPlusOne) {
  for (int n : {1, 4, 9, 19}) {
    Driven d({.size = 1}, "gem", {}, n);
    std::vector<double> pi;
    float before = 0;
    for (int t = 0; t < 120 * (n + 1); ++t) {
      Trainee& w = d[t % n];
      w.worker.oracle = [&](const optim::Slices&) { return fill(w.g, -1.f), Tensor::zeros({1}); };
      const float after = d.step(t % n);
      pi.push_back((double(after) - before) / 0.1);
      before = after;
    }
    double sum = 0;
    const size_t last = pi.size() / 2 / size_t(n * (n + 1)) * size_t(n * (n + 1));
    for (size_t i = pi.size() - last; i < pi.size(); ++i) sum += pi[i];
    EXPECT_NEAR(sum / double(last), std::min(5.0, 10.0 / (n + 1)), 0.02 * 10 / (n + 1)) << n;
    for (size_t i = 0; n == 1 && i < 6; ++i)
      EXPECT_NEAR(pi[i], std::vector<double>({1, .9, 1.81, 1.629, 2.4661, 2.21949})[i], 2e-5) << i;
  }
}

TEST(Gem, KernelIsTheFormulaAndPiIsANumberAlways) {
  const std::vector<float> odd = {0, -0.f, 1e-45f, -1e-38f, 1, -2, 1e30f, INFINITY, -INFINITY, NAN};
  const int64_t n = int64_t(odd.size() * odd.size() * odd.size());
  Tensor x({n}), g({n}), m({n}), s({n}), u({n}), pi({n}), theta({n});
  for (int64_t i = 0; i < n; ++i) {
    const size_t a = odd.size();
    g.data<float>()[i] = odd[size_t(i) % a], m.data<float>()[i] = odd[size_t(i) / a % a];
    theta.data<float>()[i] = odd[size_t(i) / a / a], s.data<float>()[i] = 0.5f, x.data<float>()[i] = 0.25f;
  }
  const Tensor m0 = m.clone(), x0 = x.clone(), s0 = s.clone();
  gem_update({.x = x,
              .m = m,
              .s = s,
              .u = u,
              .pi = pi,
              .g = g,
              .theta = theta,
              .lr = 0.1,
              .mu = 0.9,
              .kappa = 2.f,
              .decay = 0.01,
              .decayed = n / 2});
  for (int64_t i = 0; i < n; ++i) {
    const float gi = g.data<float>()[i], decay = i < n / 2 ? 0.01f * 0.25f : 0;
    const double d = -0.1f * double(gi + decay), mi = 0.9f * double(m0.data<float>()[i]) + d;
    const double over = 2 * std::abs(mi) - std::abs(double(theta.data<float>()[i]) - 0.5);
    const float got = pi.data<float>()[i];
    ASSERT_TRUE(got >= 0 && got <= 5) << i << ' ' << got;
    if (!std::isfinite(mi) || !std::isfinite(over) || std::abs(over) < 1e-6 * std::abs(mi)) continue;
    const double want = over > 0 ? std::min(5.0, over / std::max(std::abs(d), 1.17549435e-38)) : 0;
    ASSERT_NEAR(got, want, 1e-4 * (1 + want)) << i;
    if (!std::isfinite(d)) continue;
    EXPECT_NEAR(u.data<float>()[i], got * d, 1e-5 * (1 + std::abs(got * d))) << i;
    EXPECT_EQ(x.data<float>()[i], theta.data<float>()[i] + u.data<float>()[i]) << i;
    EXPECT_EQ(s.data<float>()[i], theta.data<float>()[i]) << i;
  }
}

TEST(Gem, TakesTheGradientWhereItIsTold) {
  Driven own({.size = 1}, "gem", {}, 1),
      theta({.size = 1}, "gem", options({{"gem-gradient-at", "theta"}}), 1);
  EXPECT_NEAR(own.step(0), .1, 1e-6);
  EXPECT_NEAR(theta.step(0), 0, 1e-6);   // s, without the own step
  EXPECT_NEAR(theta.step(0), .1, 1e-6);  // which is in the center
}

TEST(Gem, IsStableWhereDownpourIsNot) {
  const double bound = 2 * std::sin(std::numbers::pi / (2 * (2 * 30 - 1)));
  EXPECT_GT(growth("downpour", 30, 1.5 * bound), 10);
  EXPECT_LT(growth("gem", 30, 1.5 * bound), 2);
}

}  // namespace
}  // namespace skein
