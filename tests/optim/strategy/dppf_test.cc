// DPPF: its trace to the digit, and the width that it keeps.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

TEST(Dppf, FollowsItsTrace) {
  const std::vector<std::vector<double>> trace = {{.1, .2},
                                                  {.1875, .3825},
                                                  {.26875, .54425},
                                                  {.3788625, .6528375},
                                                  {.44097625, .78755375},
                                                  {.54985856, .85581844}};
  const auto h = train({.size = 1}, "dppf", options({{"tau", "2"}, {"push", "0.05"}}), 2, 6);
  for (size_t t = 0; t < 6; ++t)
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(h[t + 1][i][0], trace[t][i], 1e-6) << t << ' ' << i;
}

TEST(Dppf, WorkersSettleAtPushOverAlphaFromTheirMean) {
  for (const float spread : {.01f, 3.f}) {
    const Problem p{.zero_gradient = true, .start_spread = spread};
    const auto h = train(p, "dppf", options({{"tau", "1"}, {"alpha", "0.25"}, {"push", "0.1"}}), 2, 80);
    double square = 0;
    for (size_t i = 0; i < size_t(p.size); ++i) {
      const double off = (h.back()[0][i] - h.back()[1][i]) / 2;
      square += off * off;
    }
    EXPECT_NEAR(std::sqrt(square), .1 / .25, 1e-3) << spread;
  }
}

}  // namespace
}  // namespace skein
