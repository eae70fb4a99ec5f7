// Local SGD and post-local SGD: their traces to the digit.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

TEST(PostLocalSgd, FollowsItsTrace) {
  expect_trace("post-local", "--tau 2 --switch-step 2",
               {{1, {.2}}, {2, {.38}}, {3, {.442, .542, .642}}, {4, {.6878}}});
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
