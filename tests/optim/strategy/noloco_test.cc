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

}  // namespace
}  // namespace skein
