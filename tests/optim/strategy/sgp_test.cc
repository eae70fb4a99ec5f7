// Stochastic gradient push.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;
TEST(Sgp, FollowsItsTrace) {
  expect_trace("sgp", {}, {.size = 1}, {{.2, .15, .25}, {.3075, .43, .4025}, {.5195, .481875, .624625}});
}

}  // namespace
}  // namespace skein
