// EASGD: its trace to the digit, and its center.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;
TEST(Easgd, FollowsItsTrace) {
  for (const char* name : {"easgd", "eamsgd"})
    expect_trace(name, "--tau 2 --alpha 0.2",
                 {{2, {.152, .304, .456}, "z", .228}, {4, {.296096, .546592, .797088}, "z", .466944}});
}

TEST(Easgd, EvaluatesItsCenterAndDefaultsToNineTenthsOverN) {
  in_local_world(3, [](comm::Communicator& c) {
    Trainee t({.size = 1}, "easgd", flags_of("--tau 2"), c);
    t.step(0), t.step(1);
    EXPECT_NEAR(t.x.item(), 0.19 * (c.rank() + 1) * 0.7, 1e-6);
    Tensor y({1});
    t.strategy->write_model(t.worker, y);
    EXPECT_NEAR(y.item(), 0.9 * 0.38, 1e-6);
  });
}

}  // namespace
}  // namespace skein
