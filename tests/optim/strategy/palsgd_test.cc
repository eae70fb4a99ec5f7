// PALSGD: its trace to the digit, and what a pull costs and does.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

// Pulled are worker 1 in steps 3 and 5, workers 0 and 2 in steps 4 and 6: drawn by another program
// that knows Philox.
TEST(Palsgd, FollowsItsTrace) {
  expect_trace("palsgd", "--tau 2 --pull-probability 0.5 --alpha 2",
               {{1, {.1, .2, .3}},
                {2, {.5054}, "m", -.38},
                {3, {.55486, .5054, .75486}},
                {4, {.86663332}, "z", .86663332},
                {5, {.87996999, .86663332, 1.07996999}},
                {6, {1.23323382}, "m", -.48955716}});
}

TEST(Palsgd, APullTakesNoGradient) {
  comm::WorldOfOne alone;
  Trainee t({.size = 1}, "palsgd", options({{"pull-probability", "1"}}), alone);
  t.worker.oracle = [](const optim::Slices&) -> Tensor { throw Error("a gradient"); };
  for (int64_t k = 0; k < 5; ++k) EXPECT_NO_THROW(t.step(k));
}

TEST(Palsgd, APullNeverGoesPastTheAnchor) {
  in_local_world(2, [&](comm::Communicator& c) {
    Trainee t({.size = 1}, "palsgd", options({{"pull-probability", "0.5"}, {"alpha", "100"}}), c);
    for (int64_t k = 0; k < 99; ++k) {
      t.step(k);
      EXPECT_GE(t.x.item(), 0) << k;
      EXPECT_LE(t.x.item(), c.rank() + 1) << k;
    }
  });
}

TEST(Palsgd, RefusesWhatIsNoProbability) {
  EXPECT_THROW(optim::make_strategy("palsgd", options({{"pull-probability", "1.5"}}), 2), BadOption);
}

}  // namespace
}  // namespace skein
