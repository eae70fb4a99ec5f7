// Leaders and leases: windows, elections, groups, pulls, and the books that say who may step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "optim/leaders/leaders.h"
#include "optim/leaders/lease.h"
#include "optim/snapshot.h"
#include "tests/support/files.h"
#include "tests/support/trainee.h"

namespace skein::optim {
namespace {

using namespace lease;
using trainee::values;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor number(double v) { return Tensor::of<float>({1}, {float(v)}); }

TEST(LossWindow, IsTheMeanOfWhatWasSeenOfTheLast) {
  LossWindow w(4);
  EXPECT_EQ(w.mean(), kInf);
  std::vector<double> means;
  for (float loss : {2.f, 1.6f, 1.2f, 1.f, .9f, .8f}) w.see(number(loss)), means.push_back(w.mean());
  const std::vector<double> expected = {2, 1.8, 1.6, 1.45, 1.175, .975};
  for (size_t i = 0; i < means.size(); ++i) EXPECT_NEAR(means[i], expected[i], 1e-7) << i;
}

TEST(LossWindow, ANanStaysAsLongAsItIsInTheWindow) {
  LossWindow w(2);
  w.see(number(1)), w.see(number(kNan));
  EXPECT_TRUE(std::isnan(w.mean()));
  w.see(number(3)), w.see(number(5));
  EXPECT_EQ(w.mean(), 4);
}

TEST(LossWindow, IsTheSameAfterARestore) {
  LossWindow a(3), b(3);
  for (float loss : {.1f, .2f, .3f, .4f}) a.see(number(loss));
  Snapshot s;
  s.take([&](Archive& ar) { a.visit(ar); });
  s.restore([&](Archive& ar) { b.visit(ar); });
  for (float loss : {.7f, .9f}) {
    EXPECT_EQ(a.mean(), b.mean());
    a.see(number(loss)), b.see(number(loss));
  }
  EXPECT_EQ(a.mean(), b.mean());
}

TEST(Elect, TheSmallestFiniteLossWins) {
  EXPECT_EQ(elect({3, 1, 2}), 1);
  EXPECT_EQ(elect({kNan, 5, kInf}), 1);
  EXPECT_EQ(elect({-kInf, 5, -7}), 2);
}
TEST(Elect, OfEqualsTheLowestRank) {
  EXPECT_EQ(elect({2, 1, 1, 1}), 1);
  EXPECT_EQ(elect({0, 0, 0}), 0);
}
TEST(Elect, NobodyWhereNoLossIsFinite) {
  EXPECT_EQ(elect({kNan, kNan}), -1);
  EXPECT_EQ(elect({kInf, kNan, -kInf}), -1);
  EXPECT_EQ(elect({}), -1);
}

TEST(SplitGroups, AsEvenlyAsItGoes) {
  using Groups = std::vector<std::vector<int>>;
  EXPECT_EQ(split_groups(4, 2), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(split_groups(5, 2), (Groups{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(split_groups(7, 3), (Groups{{0, 1, 2}, {3, 4}, {5, 6}}));
  EXPECT_EQ(split_groups(3, 3), (Groups{{0}, {1}, {2}}));
  EXPECT_THROW(split_groups(3, 4), BadOption);
  EXPECT_THROW(split_groups(3, -1), BadOption);
}

// A world in which ranks 0 and 2 are on one host, 1 and 3 on another.
class TwoHosts final : public comm::Transport {
 public:
  explicit TwoHosts(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}
  comm::Rank rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  comm::Endpoint& to(comm::Rank r) override { return inner_->to(r); }
  comm::Mailbox& mailbox() override { return inner_->mailbox(); }
  void wait(const comm::Key& k, comm::Clock::time_point until) override { inner_->wait(k, until); }
  comm::SharedMemory& memory() override { return memory_; }

 private:
  class Hosts final : public comm::SharedMemory {
   public:
    int domain(comm::Rank r) const override { return r % 2; }
  };
  std::unique_ptr<Transport> inner_;
  Hosts memory_;
};

TEST(SplitGroups, OnePerHostByDefault) {
  auto world = comm::local_world(4);
  comm::Communicator one_host(*world[0]);
  EXPECT_EQ(split_by_host(4, one_host).size(), 1u);
  TwoHosts hosts(std::move(world[1]));
  comm::Communicator comm(hosts);
  EXPECT_EQ(split_by_host(4, comm), (std::vector<std::vector<int>>{{0, 2}, {1, 3}}));
}

TEST(Leader, IsAFixedPointOfItsPullAndTheOthersComeNearer) {
  comm::in_local_world(3, [](comm::Communicator& c) {
    // Values at which (1-c) x + c x is not x, and a negative zero.
    const Tensor x = Tensor::of<float>({4}, {0.1f + float(c.rank()), 1.f / 3, -0.f, 1e-40f});
    const std::vector<float> before = values(x);
    const Tensor buffers = Tensor::of<float>({1}, {float(c.rank())});
    const auto rule = sgd(x, {});
    Worker me{x, x, buffers, *rule, 0.1, c, 1, {}};
    Leader leader(c, me, 0.1, 0, true);
    ASSERT_TRUE(leader.pull(me, {3, 1, 2}));
    for (size_t i = 0; i < 4; ++i) {
      const float z = i == 0 ? 1.1f : before[i];
      EXPECT_NEAR(x.data<float>()[i], before[i] + 0.1f * (z - before[i]), 1e-7);
    }
    const bool same_bits = memcmp(x.raw(), before.data(), 16) == 0;
    EXPECT_EQ(same_bits, c.rank() == 1);
    EXPECT_NEAR(buffers.item(), c.rank() + 0.1 * (1 - c.rank()), 1e-7);
  });
}

TEST(Leader, NobodyElectedMovesNobody) {
  comm::in_local_world(2, [](comm::Communicator& c) {
    const Tensor x = Tensor::of<float>({1}, {float(c.rank())});
    const auto rule = sgd(x, {});
    Worker me{x, x, {}, *rule, 0.1, c, 1, {}};
    Leader leader(c, me, 0.5, 0, false);
    EXPECT_FALSE(leader.pull(me, {kNan, kInf}));
    EXPECT_EQ(x.item(), float(c.rank()));
  });
}

TEST(Leader, ProximallyPullsToTheLastLeaderAtFirstToTheStart) {
  const Tensor x = Tensor::of<float>({1}, {1});
  const auto rule = sgd(x, {});
  comm::WorldOfOne alone;
  Worker me{x, x, {}, *rule, 0.1, alone, 1, {}};
  Leader leader(alone, me, 0.5, 0.25, false);
  fill(x, 5.f);
  leader.pull_proximally(me);
  EXPECT_EQ(x.item(), 4);  // a quarter of the way to 1
  ASSERT_TRUE(leader.pull(me, {0}));
  fill(x, 8.f);
  leader.pull_proximally(me);
  EXPECT_EQ(x.item(), 7);
}

// ---- books
// -----------------------------------------------------------------------------------------------------------

TEST(CycleBook, GrantsTheCycleThenARoundForAll) {
  CycleBook book(2, 8, 2);
  const Word ask, idle{.idle = true};
  int64_t granted = 0;
  for (int g = 0; book.left() > 0; g = 1 - g) granted += book.hear(g, ask).at(0).answer.steps;
  EXPECT_EQ(granted, 8);
  EXPECT_EQ(book.hear(0, ask), (std::vector<Reply>{{0, {Next::kNoneLeft, 0}}}));
  EXPECT_TRUE(book.hear(1, idle).empty());
  EXPECT_EQ(book.hear(0, idle),
            (std::vector<Reply>{{1, {Next::kGroupRound, 0}}, {0, {Next::kGroupRound, 0}}}));
  EXPECT_EQ(book.left(), 8);
  while (book.left() > 0) book.hear(0, ask);
  book.hear(0, idle);
  EXPECT_EQ(book.hear(1, idle).at(0).answer.next, Next::kGlobalRound);  // the second
}

TEST(CycleBook, WhatIsReturnedIsGrantedAgain) {
  CycleBook book(2, 4, 1);
  int64_t first = 0;
  while (book.left() > 0) first += book.hear(0, {}).at(0).answer.steps;
  EXPECT_TRUE(book.hear(1, {.idle = true}).empty());
  // Group 0 wants to meet, with three steps not taken: group 1 gets them.
  const auto due = book.hear(0, {.idle = true, .wants = false, .returned = 3});
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].to, 1);
  EXPECT_EQ(due[0].answer.next, Next::kSteps);
}

TEST(CycleBook, MeetsWhenAllWantToAndTheRoundIsNotDue) {
  CycleBook book(2, 4, 1);
  const Word meet{.idle = true, .wants = false};
  book.hear(0, {});
  EXPECT_TRUE(book.hear(0, meet).empty());
  EXPECT_EQ(book.hear(1, meet).at(0).answer.next, Next::kMet);
  while (book.left() > 0) book.hear(0, {});
  book.hear(0, meet);
  EXPECT_EQ(book.hear(1, meet).at(0).answer.next, Next::kGlobalRound);  // the round first
  book.hear(0, meet);
  EXPECT_EQ(book.hear(1, meet).at(0).answer.next, Next::kMet);
}

// The two books played together by workers of different speeds, who now and then meet;
// a deterministic simulation.
struct Play {
  Play(std::vector<int> sizes, int64_t tau, int64_t every)
      : tau_(tau), cycle(int(sizes.size()), int64_t(tau) * total(sizes), every) {
    for (int n : sizes)
      for (groups.emplace_back(n); n > 0; --n) group_of.push_back(int(groups.size()) - 1);
    leased.resize(group_of.size()), taken.resize(group_of.size()), in.resize(group_of.size());
    first.resize(groups.size());
    for (size_t w = group_of.size(); w-- > 0;) first[size_t(group_of[w])] = int(w);
  }
  static int total(const std::vector<int>& s) { return std::accumulate(s.begin(), s.end(), 0); }

  void say(int worker, bool wants) {
    const int g = group_of[size_t(worker)];
    in[size_t(worker)] = true;
    route(g, groups[size_t(g)].hear(worker - first[size_t(g)],
                                    {.wants = wants, .returned = std::exchange(leased[size_t(worker)], 0)}));
  }
  void route(int g, const GroupBook::Out& out) {
    for (const Reply& r : out.replies) answer(first[size_t(g)] + r.to, r.answer);
    if (out.upward)
      for (const Reply& r : cycle.hear(g, *out.upward)) route(r.to, groups[size_t(r.to)].hear(r.answer));
  }
  void answer(int worker, const Answer& a) {
    EXPECT_TRUE(in[size_t(worker)]);
    in[size_t(worker)] = false;
    leased[size_t(worker)] = a.steps;
    if (a.next == Next::kSteps) return;
    if (worker == 0 && a.next == Next::kMet) ++met;
    if (worker != 0 || a.next == Next::kMet) return;
    ++rounds;
    EXPECT_EQ(Play::total(std::vector<int>(taken.begin(), taken.end())),
              rounds * tau_ * int64_t(taken.size()));
  }
  const int64_t tau_;
  CycleBook cycle;
  std::vector<GroupBook> groups;
  std::vector<int> group_of, first;
  std::vector<int64_t> leased, taken;
  std::vector<bool> in;
  int64_t rounds = 0, met = 0;
};

TEST(Books, ACycleIsExactlyWTauSteps) {
  std::mt19937 random(1);
  for (const auto& sizes : std::vector<std::vector<int>>{{1}, {4}, {2, 2}, {3, 1, 2}, {1, 1, 1, 1, 1}})
    for (int64_t tau : {1, 4, 64}) {
      Play play(sizes, tau, 3);
      const int n = int(play.taken.size());
      for (int event = 0; event < 4000; ++event) {
        // Worker 0 is n times as slow as the last; now and then all meet.
        int w = int(random() % uint32_t(n * (n + 1) / 2)), speed = 1;
        while (w >= speed) w -= speed++;
        w = speed - 1;
        if (play.in[size_t(w)]) continue;
        const bool meets = event % 500 > 480;
        if (!meets && play.leased[size_t(w)] > 0)
          --play.leased[size_t(w)], ++play.taken[size_t(w)];
        else
          play.say(w, !meets);
      }
      EXPECT_GT(play.rounds, 0);
      EXPECT_GT(play.met, 0);
    }
}

TEST(Books, WhoComesOftenerGetsMore) {
  Play play({2, 2}, 16, 1);
  while (play.rounds == 0)
    for (int w : {3, 3, 3, 0, 3, 1, 2, 3})
      if (!play.in[size_t(w)]) {
        if (play.leased[size_t(w)] > 0)
          --play.leased[size_t(w)], ++play.taken[size_t(w)];
        else
          play.say(w, true);
      }
  EXPECT_GT(play.taken[3], 2 * play.taken[0]);
  EXPECT_GT(play.taken[3], 2 * play.taken[2]);
}

TEST(Hearing, GoesByOrderOfArrivalOrOfTheRecording) {
  testing::ScratchDir folder;
  Options record, replay;
  record.set("record", folder / "order"), replay.set("replay", folder / "order");
  const auto hear_all = [](Hearing<char>& t) {
    std::string heard;
    while (const auto said = t.next()) heard += said->second;
    return heard;
  };
  {
    Hearing<char> hearing(record, "x");
    hearing.arrived(1, 'b', false), hearing.arrived(0, 'a', false);
    EXPECT_EQ(hear_all(hearing), "ba");
    hearing.arrived(1, 'c', false);
    EXPECT_EQ(hear_all(hearing), "c");
  }
  Hearing<char> hearing(replay, "x");
  hearing.arrived(0, 'a', false);
  EXPECT_EQ(hear_all(hearing), "");  // its turn is after 1's
  hearing.arrived(1, 'b', false);
  EXPECT_EQ(hear_all(hearing), "ba");
}

}  // namespace
}  // namespace skein::optim
