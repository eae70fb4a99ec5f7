// Leases: the books that say who may step, and in which order requests are heard.
#include "optim/leaders/lease.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/files.h"

namespace skein::optim {
namespace {

using namespace lease;

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
