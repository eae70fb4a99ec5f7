// Who goes first on a cable: the rule, and messages of two rounds that meet at a sender and at a receiver.
#include "comm/tcp/precedence.h"

#include "comm/communicator/communicator.h"
#include "tests/support/keys.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

using std::chrono::milliseconds;
const auto kNow = Clock::time_point(std::chrono::seconds(1000));

std::vector<bool> may(const std::vector<Passage>& all) { return may_move(all, kNow); }
Passage moving(int64_t round) { return {.round = round, .moved = kNow - milliseconds(1)}; }

TEST(Precedence, TheOldestRoundsMoveAndTheYoungerOnesWait) {
  EXPECT_EQ(may({moving(7), moving(5), moving(6), moving(5)}), (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(may({}), std::vector<bool>{});
}

TEST(Precedence, WhatBelongsToNoRoundIsNeverHeldUpAndHoldsUpNobody) {
  EXPECT_EQ(may({Passage{}, moving(5), Passage{.moved = kNow}}), (std::vector<bool>{true, true, true}));
}

TEST(Precedence, WhatIsStoppedOrDoesNotMoveKeepsNobodyWaiting) {
  Passage stopped = moving(4), still = moving(3);
  stopped.stopped = true;
  still.moved = kNow - kPause - milliseconds(1);
  EXPECT_EQ(may({moving(6), stopped, still, moving(7)}), (std::vector<bool>{true, true, true, false}));
}

// Ranks over loopback whose connections one thread drives in turn, so that none of them is ever late.
class Cables {
 public:
  explicit Cables(int n) : transports_(size_t(n)), ranks_(size_t(n)) {
    const auto table = std::make_shared<ThreadExchange::Table>(n);
    on_threads(n, [&](Rank r) {
      ThreadExchange exchange(table, r);
      transports_[size_t(r)] = connect(exchange, {.way = Way::kTcp, .key = kKey, .deadline = 20});
      ranks_[size_t(r)] =
          std::make_unique<Communicator>(*transports_[size_t(r)], CommunicatorOptions{.deadline = 20});
    });
  }
  ~Cables() {
    on_threads(int(ranks_.size()),
               [&](Rank r) { ranks_[size_t(r)].reset(), transports_[size_t(r)].reset(); });
  }
  struct Sent {
    Rank from, to;
    Tag tag;
    int64_t step;
  };
  // Sends them in this order; gives the order of their arrivals.
  std::vector<int64_t> arrivals(const std::vector<Sent>& all) {
    const Tensor x = ones(kLong);
    for (const Sent& s : all) rank(s.from).push(s.to, s.tag, s.step, 1, x);
    std::vector<int64_t> steps;
    const auto until = after(60);
    for (std::vector<bool> here(all.size()); steps.size() < all.size() && Clock::now() < until;) {
      for (const auto& r : ranks_) r->progress();
      for (size_t i = 0; i < all.size(); ++i)
        if (!here[i] && rank(all[i].to).poll(all[i].from, all[i].tag, all[i].step))
          here[i] = true, steps.push_back(all[i].step);
    }
    return steps;
  }

 private:
  static constexpr int64_t kLong = 8 << 20;  // numbers: more than what kernels keep of a connection
  Communicator& rank(Rank r) { return *ranks_[size_t(r)]; }
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<Communicator>> ranks_;
};

constexpr Tag kTag = kRounds | 1;

TEST(Precedence, OfTwoThatARankReceivesTheOlderRoundArrivesFirst) {
  EXPECT_EQ(Cables(3).arrivals({{0, 2, kTag, 5}, {1, 2, kTag, 4}}), (std::vector<int64_t>{4, 5}));
}

TEST(Precedence, OfTwoThatARankSendsTheOlderRoundArrivesFirst) {
  EXPECT_EQ(Cables(3).arrivals({{0, 1, kTag, 5}, {0, 2, kTag, 4}}), (std::vector<int64_t>{4, 5}));
}

// Each rank receives two rounds from the others at once, and sends two: all arrive.
TEST(Precedence, NobodyWaitsForever) {
  const std::vector<int64_t> got = Cables(3).arrivals(
      {{0, 1, kTag, 9}, {1, 2, kTag, 8}, {2, 0, kTag, 7}, {1, 0, kTag, 6}, {2, 1, kTag, 5}, {0, 2, kTag, 4}});
  EXPECT_EQ(got.size(), 6u);
}

}  // namespace
}  // namespace skein::comm
