// NoLoCo: its trace to the digit, and who meets whom.
#include <set>

#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

TEST(NoLoCo, FollowsItsTrace) {
  expect_trace("noloco", "--tau 2 --topology complete",
               {{1, {.1, .2, .3}},
                {2, {.266}, "m", .266},
                {3, {.3394, .4394, .5394}},
                {4, {.629622}, "z", .629622},
                {5, {.6666598, .7666598, .8666598}},
                {6, {.99369327}, "m", .36407127}});
}

// Of four workers two pairs meet at the end of a round, and alone between.
TEST(NoLoCo, ARoundEndsInPairs) {
  const auto h = train({.size = 1}, "noloco", options({{"tau", "2"}}), 4, 4);
  std::set<float> met;
  for (const auto& x : h[2]) met.insert(x[0]);
  EXPECT_EQ(met.size(), 2u);
  EXPECT_EQ(std::set<float>({h[1][0][0], h[1][1][0], h[1][2][0], h[1][3][0]}).size(), 4u);
}

// Epoch 1 begins with step 4, which is in the third round of two steps.
TEST(NoLoCo, PeersChangeWithTheEpochOfTraining) {
  const auto o = options({{"tau", "2"},
                          {"peers", "1@0,3@1"},
                          {"steps-per-epoch", "4"},
                          {"outer-lr", "1"},
                          {"outer-momentum", "0"}});
  const auto h = train({.size = 1}, "noloco", o, 4, 6);
  const auto spread = [&](size_t k) {
    const auto [low, high] = std::minmax({h[k][0][0], h[k][1][0], h[k][2][0], h[k][3][0]});
    return high - low;
  };
  EXPECT_GT(spread(2), 1e-2);
  EXPECT_LT(spread(6), 1e-5);
}

}  // namespace
}  // namespace skein
