// Quasi-global momentum: its trace to the digit, and what it refuses.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

TEST(QgDsgdm, FollowsItsTrace) {
  expect_trace("qg-dsgdm", {}, {.size = 1},
               {{.1, .2, .3},
                {.299, .398, .497},
                {.49411, .59222, .69033},
                {.6837779, .7810958, .8784137},
                {.86666013, .96327306, 1.05988599}});
}

TEST(QgDsgdm, RefusesWhatDecidesItsMomentum) {
  EXPECT_THROW(optim::make_strategy("qg-dsgdm", options({{"optimizer", "adamw"}}), 4), BadOption);
  EXPECT_THROW(optim::make_strategy("qg-dsgdm", options({{"rates", "differ"}}), 4), BadOption);
  EXPECT_THROW(optim::make_strategy("qg-dsgdm", options({{"topology", "exponential"}}), 8), BadOption);
}

}  // namespace
}  // namespace skein
