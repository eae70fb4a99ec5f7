// D-PSGD: its trace to the digit, and the graphs that it takes.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;
TEST(DPsgd, FollowsItsTrace) {
  expect_trace("d-psgd", {}, {.size = 1}, {{.1, .2, .3}, {.29, .38, .47}, {.451, .542, .633}});
}

TEST(DPsgd, RefusesGraphsThatAreNotSymmetric) {
  EXPECT_THROW(optim::make_strategy("d-psgd", options({{"topology", "exponential"}}), 8), BadOption);
  EXPECT_THROW(optim::make_strategy("d-psgd", options({{"peers", "1"}}), 3), BadOption);
  for (const char* fine : {"complete", "base", "random", "bipartite-linear"})
    EXPECT_NO_THROW(optim::make_strategy("d-psgd", options({{"topology", fine}}), 8)) << fine;
  for (int n = 1; n <= 9; ++n) EXPECT_NO_THROW(optim::make_strategy("d-psgd", {}, n)) << n;
}

}  // namespace
}  // namespace skein
