// SPARTA: its trace to the digit, and what it sends.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

// Of four elements two are averaged after each step: 0 and 3, 1 and 3, 1 and 3, 1 and 2, 1 and 3, drawn by
// another program that knows Philox.
TEST(Sparta, FollowsItsTrace) {
  const std::vector<std::vector<double>> trace[] = {
      {{.15, .10625, .1125, .16875}, {.15, .20625, .2125, .16875}},
      {{.235, .296875, .21375, .320625}, {.335, .296875, .40375, .320625}},
      {{.3115, .4234375, .304875, .4573125}, {.5015, .4234375, .575875, .4573125}},
      {{.38035, .53734375, .5588375, .53033125}, {.65135, .53734375, .5588375, .63033125}},
      {{.442315, .63985938, .61545375, .69104813}, {.786215, .63985938, .71545375, .69104813}}};
  const auto h = train({.size = 4}, "sparta", options({{"density", "0.5"}}), 2, 5);
  for (size_t t = 0; t < 5; ++t)
    for (size_t i = 0; i < 2; ++i)
      for (size_t e = 0; e < 4; ++e)
        EXPECT_NEAR(h[t + 1][i][e], trace[t][i][e], 1e-6) << t << ' ' << i << ' ' << e;
}

TEST(Sparta, SendsItsSampleAndNothingElse) {
  constexpr int64_t kSize = 200000, kSteps = 5;
  const auto sent = [](const char* row, const optim::Options& o) {
    double bytes = 0;
    in_local_world(2, [&](comm::Communicator& c) {
      Trainee t({.size = kSize}, row, o, c);
      for (int64_t k = 0; k < kSteps; ++k) t.step(k);
      if (c.rank() == 0) bytes = double(c.meter().traffic().bytes);
    });
    return bytes;
  };
  const double all = sent("local-sgd", options({{"tau", "1"}})), part = sent("sparta", {});
  EXPECT_GT(part, 0);
  EXPECT_NEAR(part / all, 0.005, 0.0005);
}

TEST(Sparta, RunningStatisticsAreSampledToo) {
  in_local_world(4, [](comm::Communicator& c) {
    Trainee t({}, "sparta", options({{"density", "1"}, {"bn-policy", "mix"}}), c);
    t.step(0);
    for (float b : values(t.buffers)) EXPECT_EQ(b, 1.5f);
  });
}

}  // namespace
}  // namespace skein
