// Gradients that overflow: whose step is skipped, that the others do not notice, and that training goes on.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/trainee.h"

namespace skein {
namespace {

using namespace trainee;

constexpr float kInf = std::numeric_limits<float>::infinity();

const Problem kScaled{.momentum = 0.9f,
                      .decay = 0.01f,
                      .noise = 1,
                      .curvature_spread = 1,
                      .nesterov = true,
                      .start_spread = 0.25f,
                      .loss_scale = "dynamic"};

// As train() of trainee.h; and the state of each worker's scale after the last step.
struct ScaledRun {
  History models;
  std::vector<LossScale::State> scales;
};
ScaledRun run(const Problem& p, const std::string& algorithm, const optim::Options& o, int n, int64_t steps) {
  ScaledRun r{History(size_t(steps) + 1, std::vector<std::vector<float>>(size_t(n))), {}};
  r.scales.resize(size_t(n));
  in_local_world(n, [&](comm::Communicator& c) {
    Trainee t(p, algorithm, o, c);
    for (int64_t k = 0; k <= steps; ++k) {
      r.models[size_t(k)][size_t(c.rank())] = values(t.x);
      if (k < steps) t.step(k);
    }
    t.strategy->settle(t.worker);
    r.models.back()[size_t(c.rank())] = values(t.x);
    r.scales[size_t(c.rank())] = t.scale->read();
  });
  return r;
}

// Rounds that fit the steps, half of the model where only a part travels, and a gradient in every step.
optim::Options short_rounds() {
  return options(
      {{"tau", "4"}, {"tau-local", "2"}, {"tau-global", "4"}, {"density", "0.5"}, {"pull-probability", "0"}});
}

TEST(Overflow, AScaleThatIsAPowerOfTwoChangesNoBit) {
  for (const optim::StrategyRow& row : optim::strategies()) {
    if (row.asynchronous()) continue;
    for (int n : {1, 3}) {
      if (n > 1 && std::string(row.name) == "sgd") continue;
      Problem plain = kScaled;
      plain.loss_scale = "none";
      EXPECT_EQ(run(kScaled, row.name, short_rounds(), n, 12).models,
                train(plain, row.name, short_rounds(), n, 12))
          << row.name << ' ' << n;
    }
  }
}

TEST(Overflow, OfOneIsEverybodysWhereGradientsAreSummed) {
  for (const char* nodes : {"none", "2"}) {
    Problem p = kScaled;
    p.start_spread = 0;
    p.clip_norm = 5;
    p.fault = [](int id, int64_t k) {
      if (k == 3) return id == 1 ? kInf : 0;
      if (k == 5) return id == 2 ? NAN : 0;
      if (k == 6) return id == 0 ? kInf : id == 1 ? -kInf : 0;
      return 0.f;
    };
    const ScaledRun r = run(p, "allreduce", options({{"hierarchy", nodes}}), 4, 9);
    for (size_t k = 0; k < 9; ++k) {
      const bool skipped = k == 3 || k == 5 || k == 6;
      for (size_t w = 0; w < 4; ++w) {
        EXPECT_EQ(r.models[k + 1][w] == r.models[k][w], skipped) << nodes << " step " << k << " worker " << w;
        EXPECT_EQ(r.models[k][w], r.models[k][0]) << nodes << " step " << k << " worker " << w;
      }
    }
    for (const LossScale::State& s : r.scales) {
      EXPECT_EQ(s.scale, LossScale::kStart / 8);
      EXPECT_EQ(s.skipped, 3);
      EXPECT_EQ(s.good, 2);
    }
  }
}

TEST(Overflow, SkipsTheStepAsIfItHadNotBeen) {
  for (const char* name : {"sgd", "allreduce", "local-sgd"}) {  // the last in rounds of one step
    Problem p = kScaled, whole = kScaled;
    p.noise = whole.noise = 0;
    p.fault = [](int, int64_t k) { return k == 4 ? kInf : 0.f; };
    const auto a = run(p, name, options({{"tau", "1"}}), 1, 10).models,
               b = train(whole, name, options({{"tau", "1"}}), 1, 9);
    for (size_t k = 0; k <= 10; ++k) EXPECT_EQ(a[k], b[k <= 4 ? k : k - 1]) << name << ' ' << k;
  }
}

TEST(Overflow, OfALocalStepIsThatWorkersOwn) {
  Problem p = kScaled;
  p.fault = [](int id, int64_t k) { return id == 1 && k == 1 ? kInf : 0.f; };
  const ScaledRun r = run(p, "local-sgd", options({{"tau", "4"}}), 3, 4);
  for (size_t w = 0; w < 3; ++w) {
    EXPECT_EQ(r.models[2][w] == r.models[1][w], w == 1) << w;
    EXPECT_EQ(r.models[4][w], r.models[4][0]) << "the mean of the models is all the same";
    EXPECT_EQ(r.scales[w].skipped, w == 1);
    EXPECT_EQ(r.scales[w].scale, w == 1 ? LossScale::kStart / 2 : LossScale::kStart);
  }
}

// Every algorithm, synchronous or not: faults of one worker after another, and after them the way to the
// optimum, which lies between 1 and 6.25.
TEST(Overflow, ReachesNobodysModelAndTrainingGoesOn) {
  for (const optim::StrategyRow& row : optim::strategies())
    for (int n : {1, 4}) {
      if (n > 1 && std::string(row.name) == "sgd") continue;
      Problem p;
      p.loss_scale = "dynamic";
      p.fault = [n](int id, int64_t k) {
        return k < 20 && k % 3 == 1 && k / 3 % n == id ? (k % 2 ? kInf : NAN) : 0.f;
      };
      const ScaledRun r = run(p, row.name, short_rounds(), n, 80);
      double skipped = 0;
      for (int w = 0; w < n; ++w) {
        for (float x : r.models.back()[size_t(w)]) {
          ASSERT_TRUE(std::isfinite(x)) << row.name << ' ' << n;
          ASSERT_TRUE(x > 0.5f && x < 8) << row.name << ' ' << n << ": " << x;
        }
        skipped += r.scales[size_t(w)].skipped;
      }
      EXPECT_EQ(skipped, std::string(row.name) == "allreduce" ? 7 * n : 7) << row.name << ' ' << n;
    }
}

}  // namespace
}  // namespace skein
