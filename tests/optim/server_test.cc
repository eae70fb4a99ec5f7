// Rows with a center: the traces to the digit, the laws, stability, and leases.
#include <cmath>
#include <numbers>

#include "engine/vectors/gem.h"
#include "optim/center/turns.h"
#include "tests/support/files.h"
#include "tests/support/servers.h"

namespace skein {
namespace {

using namespace trainee;

const std::vector<std::string> kRows = {"downpour", "dynsgd", "agn", "easgd-async", "eamsgd-async", "gem"};

// ---- contracts section 6
// ----------------------------------------------------------------------------------------
TEST(ServerTrace, Downpour) {
  Driven d({.size = 1}, "downpour", {}, 2);
  const double theta[] = {.1, .3, .39, .56, .621, .765};
  for (int t = 0; t < 6; ++t) EXPECT_NEAR(d.step(t % 2), theta[t], 1e-6) << t;
}

TEST(ServerTrace, Gem) {
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

TEST(ServerTrace, DynSgdDividesByStaleness) {
  Driven d({.size = 1}, "dynsgd", {}, 2);
  const int order[] = {0, 1, 1, 0};
  const double theta[] = {.1, .1 + .2 / 2, .2 + .18, .38 + .09 / 3};
  for (int t = 0; t < 4; ++t) EXPECT_NEAR(d.step(order[t]), theta[t], 1e-6) << t;
}

TEST(ServerTrace, ACommitIsOfTauSteps) {
  for (const auto& [row, share] : {std::pair("downpour", 1.0), {"agn", 0.5}, {"dynsgd", 1.0}}) {
    Driven d({.size = 1}, row, options({{"tau", "2"}}), 1);
    EXPECT_NEAR(d.step(0), .1, 1e-6) << row;
    EXPECT_NEAR(d.step(0), .19 * share, 1e-6) << row;
  }
}

TEST(ServerTrace, EasgdPullsBothFromTheirOldValues) {
  Driven d({.size = 1}, "easgd-async", options({{"tau", "1"}, {"alpha", "0.2"}}), 2);
  EXPECT_NEAR(d.step(0), .08, 1e-6);            // theta .02
  EXPECT_NEAR(d.step(1), .2 - .2 * .18, 1e-6);  // theta .056
  const double x = .08 + .1 * .92;
  EXPECT_NEAR(d.step(0), x - .2 * (x - .056), 1e-6);
}

// ---- laws
// ---------------------------------------------------------------------------------------------------------
// Where kappa is huge pi is at its ceiling, 5. Rates that are 2^-8 and 5 * 2^-8 round 5 (eta g) and (5 eta) g alike.
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

// ---- stability: round robin on a quadratic, to 5 %
// -------------------------------------------------------------------- How much further from the optimum the
// worst of ten late rounds is than that of ten early ones.
double growth(const std::string& row, int n, double rate) {
  Problem p{.size = 1, .lr = float(rate)};
  p.id = [](int) { return 0; };
  Driven d(p, row, {}, n);
  double early = 0, late = 0;
  for (int t = 0; t < 60 * n; ++t) {
    const double off = std::abs(d.step(t % n) - 1);
    if (t >= 20 * n && t < 30 * n) early = std::max(early, off);
    if (t >= 50 * n) late = std::max(late, off);
  }
  return late / early;
}

TEST(Downpour, IsStableExactlyBelowTheBound) {
  for (int n : {1, 4, 10, 30, 100}) {
    const double bound = 2 * std::sin(std::numbers::pi / (2 * (2 * n - 1)));
    EXPECT_LT(growth("downpour", n, 0.95 * bound), 0.7) << n;
    EXPECT_GT(growth("downpour", n, 1.05 * bound), 1.4) << n;
  }
}

TEST(Gem, IsStableWhereDownpourIsNot) {
  const double bound = 2 * std::sin(std::numbers::pi / (2 * (2 * 30 - 1)));
  EXPECT_GT(growth("downpour", 30, 1.5 * bound), 10);
  EXPECT_LT(growth("gem", 30, 1.5 * bound), 2);
}

// ---- every row, free running
// ---------------------------------------------------------------------------------------- Theta leans to
// whom the machine lets commit most: somewhere between what the workers want (1 to 4), from 0.
TEST(EveryServerRow, TrainsASmallProblemFreely) {
  const Problem p{.lr = 0.03f, .noise = 0.1f, .curvature_spread = 0.5f};
  for (const std::string& row : kRows)
    for (bool dedicated : {false, true}) {
      const bool elastic = row.find("gd-async") != std::string::npos;
      const auto o = elastic ? options({{"tau", "2"}, {"alpha", "0.2"}}) : optim::Options();
      const Ending e = run(p, row, o, 4, dedicated, {0, 100, 300});
      for (const auto& theta : e.theta) {
        EXPECT_EQ(theta, e.theta[0]) << row;
        for (size_t i = 0; i < theta.size(); ++i)
          EXPECT_NEAR(theta[i], 2.5 + double(i) / 16, 1.7) << row << ' ' << dedicated;
      }
    }
}

TEST(EveryServerRow, RunsAlone) {
  for (const std::string& row : kRows)
    for (bool dedicated : {false, true}) {
      const Ending e = run({}, row, options({{"alpha", "0.5"}, {"tau", "1"}}), 1, dedicated, {0, 150});
      EXPECT_NEAR(e.theta[0][0], 1, 0.05) << row;
    }
}

TEST(EveryServerRow, RefusesWhatItCannotDo) {
  for (const char* row : {"downpour", "agn", "easgd-async"})
    EXPECT_THROW(optim::make_strategy(row, options({{"tau", "0"}}), 2), BadOption);
  EXPECT_THROW(optim::make_strategy("gem", options({{"gem-gradient-at", "there"}}), 2), BadOption);
  EXPECT_THROW(optim::make_strategy("gem", options({{"gem-momentum", "1"}}), 2), BadOption);
  EXPECT_THROW(optim::make_strategy("gem", options({{"servers", "many"}}), 2), BadOption);
  EXPECT_THROW(optim::make_strategy("easgd-async", options({{"alpha", "1.5"}}), 2), BadOption);
}

// ---- recordings and checkpoints
// -------------------------------------------------------------------------------------
class Recorded : public ::testing::Test {
 protected:
  optim::Options with(const char* how) const {
    optim::Options o = options({{"tau", "2"}, {"alpha", "0.2"}});
    o.set(how, folder_ / "order");
    return o;
  }
  const Problem p_{.momentum = 0.9f, .decay = 0.01f, .noise = 1, .start_spread = 0.5f};
  testing::ScratchDir folder_;
};

TEST_F(Recorded, IsDoneAgainBitForBit) {
  for (const std::string& row : kRows)
    for (bool dedicated : {false, true}) {
      const Ending once = run(p_, row, with("record"), 5, dedicated, {0, 24});
      EXPECT_EQ(run(p_, row, with("replay"), 5, !dedicated, {0, 24}), once) << row;
      EXPECT_EQ(run(p_, row, with("replay"), 5, dedicated, {0, 24}), once) << row;
    }
}

TEST_F(Recorded, ResumedAtAMeetingEqualsUninterrupted) {
  for (const std::string& row : kRows)
    for (bool dedicated : {false, true}) {
      std::vector<optim::Snapshot> whole(3), part(3), parts(3);
      const Ending once = run(p_, row, with("record"), 3, dedicated, {0, 5, 12}, nullptr, &whole);
      run(p_, row, with("replay"), 3, dedicated, {0, 5}, nullptr, &part);
      EXPECT_EQ(run(p_, row, with("replay"), 3, !dedicated, {5, 12}, &part, &parts), once) << row;
      EXPECT_TRUE(parts == whole) << row;
    }
}

TEST_F(Recorded, ARecordingGoesOnFromACheckpoint) {
  std::vector<optim::Snapshot> part(3);
  run(p_, "gem", with("record"), 3, false, {0, 5}, nullptr, &part);
  run(p_, "gem", with("record"), 3, false, {5, 9}, &part);  // is forgotten
  const Ending second = run(p_, "gem", with("record"), 3, false, {5, 12}, &part);
  EXPECT_EQ(run(p_, "gem", with("replay"), 3, true, {0, 12}), second);
}

TEST_F(Recorded, AFailureOfTheServerIsEverybodys) {
  EXPECT_THROW(run(p_, "gem", with("replay"), 3, true, {0, 2}), BadFile);  // there is no recording
  EXPECT_THROW(run(p_, "gem", with("replay"), 3, false, {0, 2}), Error);
  run(p_, "gem", with("record"), 3, false, {0, 4});
  try {
    run(p_, "gem", with("replay"), 3, true, {0, 6});
    FAIL() << "the recording is too short";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("ends after 12"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace skein
