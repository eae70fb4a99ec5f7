// The clock of waits: waiting forever, and deadlines that are restored.
#include "comm/clock.h"

#include "comm/communicator/patience.h"
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

TEST(Clock, PatienceEndsWithItsScopeHoweverThatIsLeft) {
  in_local_world(1, [](Communicator& c) {
    try {
      const Patience patience(c);
      EXPECT_EQ(c.options().deadline, kForever);
      throw Error("out of here");
    } catch (const Error&) {}
    EXPECT_EQ(c.options().deadline, 20);
  });
}

}  // namespace
}  // namespace skein::comm
