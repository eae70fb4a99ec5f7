// Connecting one process with others: what is left of it when they do not come, and what it does while one of
// them takes nothing.
#include <atomic>
#include <filesystem>

#include "tests/support/keys.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

// Rank 0 of two, where rank 1 says the same as rank 0 and then never comes.
class Deserted final : public Exchange {
 public:
  Rank rank() const override { return 0; }
  int size() const override { return 2; }
  std::vector<std::string> all_gather(const std::string& mine) override { return {mine, mine}; }
};

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

// A worker of an elastic run connects as often as those who should come die.
TEST(Connecting, InVainLeavesNoFilesOpen) {
  for (const Way way : {Way::kShared, Way::kTcp}) {
    std::ptrdiff_t before = 0;
    for (int i = 0; i < 4; ++i) {
      Deserted others;
      EXPECT_THROW(connect(others, {.way = way, .key = kKey, .deadline = 0.01}), Timeout);
      if (i == 0) before = open_files();
    }
    EXPECT_EQ(open_files(), before) << (way == Way::kTcp ? "tcp" : "shared");
  }
}

// Any thread may make progress, also the council's, which nobody would catch.
TEST(Connected, ARefusalThatFindsNoRoomIsNoErrorOfWhoRefuses) {
  const auto table = std::make_shared<ThreadExchange::Table>(2);
  std::atomic<int> stage{0};
  on_threads(2, [&](Rank r) {
    ThreadExchange e(table, r);
    const auto t = connect(e, {.way = Way::kShared, .key = kKey, .deadline = 20});
    Communicator c(*t, {.deadline = 1});
    const auto reach = [&](int s) {
      for (++stage; stage < s;) std::this_thread::yield();
    };
    const auto push_without_end = [&] {
      for (int64_t k = 0;; ++k) c.push(1, 7, k, 1, ones(1));
    };
    if (r == 0) { EXPECT_THROW(push_without_end(), Timeout); }
    reach(2);
    if (r == 1) t->to(0).send(notice(Kind::kData, 1, 77, ones(1)), ones(1), after(1));
    reach(4);
    if (r == 0) {
      EXPECT_NO_THROW(t->progress());
      EXPECT_THROW(c.take(1, 7, 0), Disagreement);
    }
    reach(6);
  });
}

// Two ranks, of which rank 1 takes nothing that rank 0 pushes, until rank 0 waits for room.
class NoRoom : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int64_t kMostOnTheWay = 1 << 20;  // bytes

  // Calls f while a push waits, and returns what has ended the push. Rank 1 counts the letters that reach it.
  template <class F>
  std::string while_a_push_waits(F f) {
    const auto table = std::make_shared<ThreadExchange::Table>(2);
    std::atomic<bool> over{false};
    std::string how;
    on_threads(2, [&](Rank r) {
      ThreadExchange e(table, r);
      const auto t =
          connect(e, {.way = parse_way(GetParam()), .key = kKey, .deadline = 20, .in_flight = kMostOnTheWay});
      Communicator c(*t, {.deadline = 3});
      for (; r == 1 && !over; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
        t->progress();
        letters += int(t->mailbox().take_letters().size());
        if (peer_ends && !t->mailbox().epoch_ends()) t->mailbox().end_epoch("the end");
      }
      if (r == 1) return;
      std::atomic<int64_t> pushed{0};
      Thread pushes([&] { how = push_without_end(c, pushed); });
      for (int64_t before = -1; before != pushed; std::this_thread::sleep_for(std::chrono::milliseconds(300)))
        before = pushed;
      f(*t);
      t->mailbox().end_epoch("the end");
      pushes.join();
      over = true;
    });
    return how;
  }
  // Sends rank 1 a letter and returns whether it has come.
  bool arrives_at_once(Transport& t) {
    const Message letter = notice(Kind::kLetter, 0, t.mailbox().membership().epoch(), Tensor::zeros({99}));
    t.to(1).send(letter, letter.payload, after(1));
    for (const auto until = after(1); letters == 0 && Clock::now() < until;) {
      t.progress();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return letters > 0;
  }
  std::atomic<int> letters{0};
  std::atomic<bool> peer_ends{false};

 private:
  static std::string push_without_end(Communicator& c, std::atomic<int64_t>& pushed) try {
    for (; !c.transport().mailbox().epoch_ends(); ++pushed) c.push(1, 7, pushed, 1, ones(kMostOnTheWay / 4));
    return "";
  } catch (const Error& e) { return e.what(); }
};
INSTANTIATE_TEST_SUITE_P(Way, NoRoom, ::testing::Values("shared", "tcp", "ucx"),
                         [](const auto& way) { return way.param; });

// The peer takes nothing because it has promised already to complete no further step.
TEST_P(NoRoom, IsNeededByThePushesOfAnEpochThatEnds) {
  const std::string how = while_a_push_waits([&](Transport& t) { t.mailbox().end_epoch("the end"); });
  EXPECT_EQ(how, "");
}

// It may be the one by which the peer learns why nobody goes on.
TEST_P(NoRoom, ALetterIsNotHeldUpByAPushThatWaits) {
  while_a_push_waits([&](Transport& t) {
    const auto began = Clock::now();
    const bool arrived = arrives_at_once(t);
    EXPECT_LT(seconds_since(began), 1.5);
    EXPECT_TRUE(arrived || GetParam() != "shared") << "messages of a stream arrive in order";
  });
}
TEST_P(NoRoom, ALetterReachesAPeerThatHasLeftTheEpoch) {
  while_a_push_waits([&](Transport& t) {
    peer_ends = true;
    EXPECT_TRUE(arrives_at_once(t));
  });
}

}  // namespace
}  // namespace skein::comm
