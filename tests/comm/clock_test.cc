// The clock of waits: deadlines, and waiting without one.
#include "comm/clock.h"

#include "tests/support/world.h"

namespace skein::comm {
namespace {

TEST(Clock, ForeverIsFurtherThanAnyRunAndLeavesRoomToAddTo) {
  const auto until = after(kForever);
  EXPECT_GT(until - Clock::now(), std::chrono::hours(24 * 365 * 50));
  EXPECT_GT(until + std::chrono::hours(24 * 365 * 50), until);
  EXPECT_LT(after(1), until);
}

TEST(Clock, AWaitWithoutADeadlineEndsWithTheMessageOrThePeer) {
  auto world = local_world(2);
  on_threads(
      2,
      [&](Rank r) {
        Communicator c(*world[size_t(r)], {.deadline = kForever});
        if (r == 0) return c.push(1, 1, 0, 1, Tensor::zeros({1}));
        c.take(0, 1, 0);
        EXPECT_THROW(c.take(0, 1, 1), PeerLost);
      },
      [&](Rank r) { world[size_t(r)].reset(); });
}

}  // namespace
}  // namespace skein::comm
