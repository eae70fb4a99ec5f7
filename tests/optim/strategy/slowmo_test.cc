// SlowMo and BMUF: their traces to the digit, and a rate of zero.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;
TEST(SlowMo, FollowsItsTrace) {
  expect_trace("slowmo", "--tau 2 --beta 0.5 --alpha 1", {{2, {.38}, "m", -3.8}, {4, {.8778}, "m", -4.978}});
}
TEST(Bmuf, FollowsItsTrace) {
  expect_trace("bmuf", "--tau 2 --beta 0.5", {{2, {.38}, "D", .38}, {4, {.8778}, "D", .4978}});
  expect_trace("bmuf", "--tau 2 --beta 0.5 --outer-nesterov on", {{2, {.57}, "D", .38}});
}

TEST(SlowMo, OnlyAveragesWhereTheRateIsZero) {
  in_local_world(3, [](comm::Communicator& c) {
    Trainee t({.size = 1}, "slowmo", flags_of("--tau 2"), c);
    t.step(0), t.step(1);
    const float m = first_of(*t.strategy, "m"), x = t.x.item();
    t.step(2);
    t.worker.lr = 0;
    t.step(3);
    EXPECT_EQ(first_of(*t.strategy, "m"), m);
    EXPECT_NEAR(t.x.item(), x + 0.1 * (2 - x), 1e-6);
    EXPECT_EQ(first_of(*t.strategy, "z"), t.x.item());
  });
}

}  // namespace
}  // namespace skein
