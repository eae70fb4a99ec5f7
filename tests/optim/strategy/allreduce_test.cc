// Averaging of gradients: its trace to the digit, and batches of different sizes.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

TEST(AllReduce, FollowsItsTrace) {
  expect_trace("allreduce", {}, {.size = 1, .momentum = 0.9f, .decay = 0.1f},
               {{.2, .2, .2}, {.558, .558, .558}, {1.01882, 1.01882, 1.01882}});
}

TEST(AllReduce, WeighsByTheSamplesOfEachRank) {
  const Problem p{.size = 1, .uneven_batches = true};
  const auto h = train(p, "allreduce", {}, 3, 1);  // 1, 2, 3 samples that want 1, 2, 3
  for (const auto& x : h[1]) EXPECT_NEAR(x[0], 0.1 * (1 * 1 + 2 * 2 + 3 * 3) / 6, 1e-7);
}

}  // namespace
}  // namespace skein
