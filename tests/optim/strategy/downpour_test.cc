// Downpour, DynSGD and AGN: their traces to the digit, and where they are stable.
#include <cmath>
#include <numbers>

#include "tests/support/servers.h"

namespace skein {
namespace {

using namespace trainee;

TEST(Downpour, FollowsItsTrace) {
  Driven d({.size = 1}, "downpour", {}, 2);
  const double theta[] = {.1, .3, .39, .56, .621, .765};
  for (int t = 0; t < 6; ++t) EXPECT_NEAR(d.step(t % 2), theta[t], 1e-6) << t;
}

TEST(ServerTrace, DynSgdDividesByStaleness) {
  Driven d({.size = 1}, "dynsgd", {}, 2);
  const int order[] = {0, 1, 1, 0};
  const double theta[] = {.1, .1 + .2 / 2, .2 + .18, .38 + .09 / 3};
  for (int t = 0; t < 4; ++t) EXPECT_NEAR(d.step(order[t]), theta[t], 1e-6) << t;
}

TEST(ServerTrace, ACommitIsOfTauSteps) {
  for (const auto& [row, share] : {std::pair("downpour", 1.0), {"agn", 0.5}, {"dynsgd", 1.0}}) {
    Driven d({.size = 1}, row, options({{"tau", "2"}}), 1);
    EXPECT_NEAR(d.step(0), .1, 1e-6) << row;
    EXPECT_NEAR(d.step(0), .19 * share, 1e-6) << row;
  }
}

TEST(Downpour, IsStableExactlyBelowTheBound) {
  for (int n : {1, 4, 10, 30, 100}) {
    const double bound = 2 * std::sin(std::numbers::pi / (2 * (2 * n - 1)));
    EXPECT_LT(growth("downpour", n, 0.95 * bound), 0.7) << n;
    EXPECT_GT(growth("downpour", n, 1.05 * bound), 1.4) << n;
  }
}

}  // namespace
}  // namespace skein
