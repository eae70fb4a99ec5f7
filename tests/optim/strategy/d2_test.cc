// D2 and momentum tracking: their traces to the digit, and the graphs that they take.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

TEST(D2, FollowsItsTrace) {
  expect_trace("d2", {}, {.size = 1},
               {{.15, .2, .25},
                {.3325, .38, .4275},
                {.519375, .542, .564625},
                {.68768125, .6878, .68791875},
                {.82908844, .81902, .80895156}});
}

TEST(D2, NeedsAGraphThatStandsStill) {
  for (const char* moves : {"random", "bipartite-exponential", "exponential"})
    EXPECT_THROW(optim::make_strategy("d2", options({{"topology", moves}}), 8), BadOption) << moves;
  for (int n = 1; n <= 9; ++n) EXPECT_NO_THROW(optim::make_strategy("d2", {}, n)) << n;
}

TEST(D2, RefusesACodecThatFollowsSlowly) {
  EXPECT_THROW(optim::make_strategy("d2", options({{"wire", "topk:0.3"}}), 4), BadOption);
  EXPECT_NO_THROW(optim::make_strategy("d2", options({{"wire", "int4"}}), 4));
}

// Workers that want different models agree on one, which with a constant rate D-PSGD never does.
TEST(D2, WorkersWithUnequalDataAgree) {
  for (const char* name : {"d2", "momentum-tracking"}) {
    const auto h = train({.size = 1}, name, {}, 8, 400);
    for (const auto& x : h.back()) EXPECT_NEAR(x[0], 4.5, 1e-3) << name;
  }
  const auto h = train({.size = 1}, "d-psgd", {}, 8, 400);
  EXPECT_GT(std::abs(h.back()[0][0] - h.back()[4][0]), 0.1);
}

TEST(MomentumTracking, FollowsItsTrace) {
  expect_trace("momentum-tracking", {}, {.size = 1},
               {{.2, .2, .2}, {.38, .38, .38}, {.542}, {.6878}, {.81902}});
  expect_trace("momentum-tracking", {}, {.size = 1, .momentum = .5f},
               {{.2, .2, .2}, {.48, .48, .48}, {.772}, {1.0408}, {1.27112, 1.27112, 1.27112}});
}

}  // namespace
}  // namespace skein
