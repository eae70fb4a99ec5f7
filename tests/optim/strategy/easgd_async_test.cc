// Asynchronous EASGD.
#include "tests/support/servers.h"

namespace skein {
namespace {

using namespace trainee;

TEST(ServerTrace, EasgdPullsBothFromTheirOldValues) {
  Driven d({.size = 1}, "easgd-async", options({{"tau", "1"}, {"alpha", "0.2"}}), 2);
  EXPECT_NEAR(d.step(0), .08, 1e-6);            // theta .02
  EXPECT_NEAR(d.step(1), .2 - .2 * .18, 1e-6);  // theta .056
  const double x = .08 + .1 * .92;
  EXPECT_NEAR(d.step(0), x - .2 * (x - .056), 1e-6);
}

}  // namespace
}  // namespace skein
