// How long steps take: the laws' means, the draws of a seed, and the time that passes in a world.
#include "comm/sim/pace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace skein::comm::sim {
namespace {

using Law = PacePlan::Law;
const PacePlan kConstant{.step = 2}, kLognormal{.law = Law::kLognormal, .step = 2, .sigma = 0.5},
    kMarkov{.law = Law::kMarkov, .step = 2, .slow = 4, .enter = 0.1, .leave = 0.3};

std::vector<double> draws(const PacePlan& p, size_t n, uint64_t seed = 1, int rank = 0, double speed = 1) {
  World world;
  Pace pace(world, p, seed, rank, 4, speed);
  std::vector<double> all;
  for (size_t i = 0; i < n; ++i) pace.begin(), all.push_back(pace.seconds());
  return all;
}

TEST(Pace, HasTheMeanOfThePlanUnderEveryLaw) {
  for (const PacePlan& p : {kConstant, kLognormal, kMarkov}) {
    constexpr size_t kSteps = 40000;
    double sum = 0;
    for (double s : draws(p, kSteps)) sum += s;
    EXPECT_NEAR(sum / kSteps, 2, 0.05) << int(p.law);
  }
}

TEST(Pace, OfALognormalLawHasItsDeviation) {
  double squares = 0;
  for (double s : draws(kLognormal, 40000)) squares += std::pow(std::log(s / 2) + 0.125, 2);
  EXPECT_NEAR(std::sqrt(squares / 40000), 0.5, 0.01);
}

// Slow steps come in runs of 1 / leave on average, and enter / (enter + leave) of all are slow.
TEST(Pace, OfAMarkovLawIsSlowForRunsOfSteps) {
  const std::vector<double> all = draws(kMarkov, 40000);
  ASSERT_EQ(std::set<double>(all.begin(), all.end()).size(), 2u);
  const double slowest = *std::max_element(all.begin(), all.end());
  EXPECT_NEAR(slowest / *std::min_element(all.begin(), all.end()), 4, 1e-9);
  double slow = 0, runs = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    slow += all[i] == slowest;
    runs += all[i] == slowest && (i == 0 || all[i - 1] != slowest);
  }
  EXPECT_NEAR(slow / 40000, 0.25, 0.02);
  EXPECT_NEAR(slow / runs, 1 / 0.3, 0.15);
}

TEST(Pace, IsThatOfItsSeedAndWorker) {
  for (const PacePlan& p : {kLognormal, kMarkov}) {
    EXPECT_EQ(draws(p, 100), draws(p, 100));
    EXPECT_NE(draws(p, 100), draws(p, 100, 2));
    EXPECT_NE(draws(p, 100), draws(p, 100, 1, 1));
  }
}

TEST(Pace, OfATraceBeginsElsewhereForEachWorkerAndGoesAround) {
  const PacePlan p{.law = Law::kTrace, .trace = {1, 2, 3, 4}};
  EXPECT_EQ(draws(p, 5), (std::vector<double>{1, 2, 3, 4, 1}));
  EXPECT_EQ(draws(p, 3, 1, 2), (std::vector<double>{3, 4, 1}));
}

TEST(Pace, OfAFasterWorkerIsShorter) { EXPECT_EQ(draws(kConstant, 1, 1, 0, 4)[0], 0.5); }

TEST(Pace, ForwardAndBackwardMakeAStep) {
  World world;
  world.begin(1, [&] {
    Pace pace(world, {.step = 2, .forward = 0.25}, 1, 0, 1);
    pace.begin();
    pace.forward(1);
    EXPECT_NEAR(world.now(), 0.5, 1e-8);
    for (int part = 0; part < 3; ++part) pace.backward(1. / 3);
    EXPECT_NEAR(world.now(), 2, 1e-8);
  });
  world.run();
}

TEST(Pace, SpendsTimeOnVectors) {
  World world;
  world.begin(1, [&] {
    Pace free(world, {}, 1, 0, 1), pace(world, {.vector = 1e-3}, 1, 0, 1, 2);
    free.vectors(1e9);
    EXPECT_EQ(world.now(), 0);
    pace.vectors(1000);
    EXPECT_NEAR(world.now(), 0.5, 1e-8);
  });
  world.run();
}

}  // namespace
}  // namespace skein::comm::sim
