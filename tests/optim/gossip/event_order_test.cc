// EventOrder: threads wait for their turn, for each other's failure, and for no longer than they may.
#include "optim/gossip/event_order.h"

#include <gtest/gtest.h>

#include "comm/sim/world.h"
#include "tests/support/files.h"

namespace skein::optim {
namespace {

Options with_file(const std::string& key, const std::string& value) {
  Options o;
  o.set(key, value);
  return o;
}

TEST(EventOrder, AReplayTakesEventsOfSeveralThreadsInTheRecordedOrder) {
  const testing::ScratchDir folder;
  const std::vector<int64_t> recorded{1, 0, 0, 2, 1, 2, 0, 1, 2, 2};
  {
    EventOrder order;
    order.open(with_file("record", folder / "order"), "0");
    for (const int64_t event : recorded) {
      EventOrder::Lock lock = order.lock();
      order.begin(lock, event);
    }
  }
  EventOrder order;
  order.open(with_file("replay", folder / "order"), "0");
  std::vector<int64_t> happened;
  std::vector<comm::Thread> threads;
  for (int64_t mine = 0; mine < 3; ++mine)
    threads.emplace_back([&, mine] {
      for (int64_t n = std::count(recorded.begin(), recorded.end(), mine); n > 0; --n) {
        EventOrder::Lock lock = order.lock();
        order.begin(lock, mine);
        happened.push_back(mine);
        order.notify();
      }
    });
  for (comm::Thread& t : threads) t.join();
  EXPECT_EQ(happened, recorded);
}

TEST(EventOrder, AWaitEndsByTheFailureOfAnotherThread) {
  EventOrder order;
  order.open({}, "0");
  comm::Thread other([&] {
    const EventOrder::Lock lock = order.lock();
    order.fail(std::make_exception_ptr(Error("the other side is lost")));
  });
  EventOrder::Lock lock = order.lock();
  EXPECT_EQ(testing::message_of<Error>([&] { order.until(lock, [] { return false; }); }),
            "the other side is lost");
  order.wait_until(lock, comm::Clock::time_point::max(), [] { return false; });  // does not throw it
  EXPECT_THROW(order.rethrow_failure(), Error);
  lock.unlock();
  other.join();
}

TEST(EventOrder, AWaitEndsWhenItIsStopped) {
  EventOrder order;
  order.open({}, "0");
  comm::Thread other([&] { order.stop(); });
  EventOrder::Lock lock = order.lock();
  EXPECT_THROW(order.until(lock, [] { return false; }), Error);
  order.wait_until(lock, comm::Clock::time_point::max(), [] { return false; });
  EXPECT_TRUE(order.stopped());
  lock.unlock();
  other.join();
}

TEST(EventOrder, AWaitThatTakesTooLongSaysForWhat) {
  const testing::ScratchDir folder;
  EventOrder order;
  order.open({}, "0");
  order.set_deadline(0.01);
  EventOrder::Lock lock = order.lock();
  EXPECT_EQ(testing::message_of<Error>([&] { order.until(lock, [] { return false; }); }),
            "ad-psgd waited 0.01 s for its partner");
  {
    EventOrder past;
    past.open(with_file("record", folder / "order"), "0");
    EventOrder::Lock held = past.lock();
    past.begin(held, 5);
  }
  EventOrder replay;
  replay.open(with_file("replay", folder / "order"), "0");
  replay.set_deadline(0.01);
  EventOrder::Lock held = replay.lock();
  EXPECT_EQ(testing::message_of<Error>([&] { replay.begin(held, 7); }),
            "ad-psgd waited 0.01 s for event 5 of the recording");
}

TEST(EventOrder, AWaitDoesNotCountTheTimeForWhichItsWorkerHung) {
  comm::sim::World world;
  world.begin(0, [&] {
    EventOrder order;
    order.open({}, "0");
    order.set_deadline(20);
    bool there = false;
    comm::Thread other([&] {
      comm::sim::spend(112);
      const EventOrder::Lock lock = order.lock();
      there = true;
      order.notify();
    });
    EventOrder::Lock lock = order.lock();
    EXPECT_NO_THROW(order.until(lock, [&] { return there; }));
    EXPECT_THROW(order.until(lock, [] { return false; }), Error);
    EXPECT_NEAR(world.now(), 132, 1);
    lock.unlock();
    other.join();
  });
  world.at(5, [&] { world.hang(0); });
  world.at(105, [&] { world.wake(0); });
  world.run();
}

}  // namespace
}  // namespace skein::optim
