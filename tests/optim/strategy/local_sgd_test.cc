// Local SGD and post-local SGD: their traces to the digit.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

TEST(PostLocalSgd, FollowsItsTrace) {
  expect_trace("post-local", "--tau 2 --switch-step 2",
               {{1, {.2}}, {2, {.38}}, {3, {.442, .542, .642}}, {4, {.6878}}});
}

// The first mean is coded as the difference from the model at the switch, and not from the one at the start.
TEST(PostLocalSgd, TheSwitchKeepsWhatWasLearnedUnderACodec) {
  for (const char* wire : {"int4", "topk:0.1"}) {
    const auto o = options({{"tau", "2"}, {"switch-step", "20"}, {"wire", wire}});
    const auto h = train({}, "post-local", o, 4, 22);
    EXPECT_GT(h[20][0][36], 3) << wire;
    EXPECT_LT(largest_difference(h[22][0], h[20][0]), 0.3) << wire;
  }
}

TEST(LocalSgd, FollowsItsTrace) {
  expect_trace("local-sgd", options({{"tau", "2"}}), {.size = 1},
               {{.1, .2, .3}, {.38, .38, .38}, {.442, .542, .642}, {.6878, .6878, .6878}});
}

TEST(LocalSgd, RefusesAPeriodOfZero) {
  EXPECT_THROW(optim::make_strategy("local-sgd", options({{"tau", "0"}}), 2), BadOption);
}

}  // namespace
}  // namespace skein
