// Councils of ranks that are threads: those that are left agree on who continues.
#include "comm/membership/council.h"

#include <gtest/gtest.h>

#include <memory>

#include "comm/communicator/communicator.h"
#include "comm/communicator/run_workers.h"

namespace skein::comm {
namespace {

View of(int n) {
  View v;
  for (int r = 0; r < n; ++r) v.members.push_back({MemberId(100 + r), text("card of ", r), true});
  return v;
}

CouncilOptions options(const View& v, Rank me) {
  return {.me = v.members[size_t(me)].id,
          .now = v,
          .card = v.members[size_t(me)].card,
          .is_gone = [](const std::string&) { return true; }};
}

std::vector<MemberId> ids(const View& v) {
  std::vector<MemberId> out;
  for (const View::Member& m : v.members) out.push_back(m.id);
  return out;
}

using World = std::vector<std::unique_ptr<Transport>>;

// Looks to the others like a kill -9.
void kill(World& world, Rank victim) {
  for (auto& t : world)
    if (t->rank() != victim) t->mailbox().lose(victim, "its process has ended", true);
}

// Each of n ranks completes `steps`[rank] steps; then the victims die, and the others go on.
std::vector<View> live_on(int n, const std::vector<int64_t>& steps, const std::vector<Rank>& victims) {
  World world = local_world(n);
  const View first = of(n);
  std::vector<View> next(static_cast<size_t>(n));
  std::atomic<int> ready{0};
  on_threads(n, [&](Rank me) {
    auto council = std::make_unique<Council>(*world[size_t(me)], options(first, me));
    for (int64_t k = 1; k <= steps[size_t(me)]; ++k) council->complete_step(k, std::max<int64_t>(0, k - 2));
    ++ready;
    while (ready < n) std::this_thread::yield();
    if (std::count(victims.begin(), victims.end(), me)) {
      council.reset();
      return kill(world, me);
    }
    View& v = next[size_t(me)] = council->next(20);
    // Of two who die one after the other, the second may still be in the first view.
    while (std::any_of(victims.begin(), victims.end(),
                       [&](Rank r) { return v.has(first.members[size_t(r)].id); }))
      v = *council->after(v, 20);
    ++ready;
    while (ready < 2 * n - int(victims.size())) std::this_thread::yield();
  });
  return next;
}

TEST(Council, GoesOnWithoutADeadRankWhicheverItIs) {
  for (Rank victim : {0, 1, 3}) {
    const std::vector<View> next = live_on(4, {5, 5, 5, 5}, {victim});
    for (Rank r = 0; r < 4; ++r) {
      if (r == victim) continue;
      EXPECT_EQ(next[size_t(r)].epoch, 2u);
      EXPECT_EQ(next[size_t(r)].members.size(), 3u);
      EXPECT_FALSE(next[size_t(r)].has(MemberId(100 + victim)));
      EXPECT_EQ(next[size_t(r)], next[size_t(victim == 0 ? 1 : 0)]) << "one view";
    }
  }
}

TEST(Council, GoesOnWithHalfOfTheRanksIfTheOthersHaveCertainlyEnded) {
  const std::vector<View> next = live_on(4, {5, 5, 5, 5}, {0, 2});
  EXPECT_EQ(ids(next[1]), (std::vector<MemberId>{101, 103}));
  EXPECT_EQ(next[1], next[3]);
}

TEST(Council, TheNextEpochBeginsAtTheLastStepThatAllHaveTaken) {
  const std::vector<View> next = live_on(3, {7, 6, 7}, {2});
  EXPECT_EQ(next[0].step, 6);
  EXPECT_EQ(next[0], next[1]);
}

// Silence, and then letters: a cable was cut and mended.
TEST(Council, WhoIsHeardAgainIsNotLeftOutAndNoFurtherEpochIsChosen) {
  World world = local_world(3);
  const View first = of(3);
  std::atomic<int> ready{0};
  on_threads(3, [&](Rank me) {
    CouncilOptions o = options(first, me);
    o.is_gone = [](const std::string&) { return false; };
    Council council(*world[size_t(me)], std::move(o));
    for (Rank r = 0; r < 3; ++r)
      if (r != me) world[size_t(me)]->mailbox().lose(r, "not heard of");
    const View next = council.next(20);
    EXPECT_EQ(next.epoch, 2u);
    EXPECT_EQ(ids(next), ids(first));
    EXPECT_FALSE(council.after(next, 0.5).has_value());
    ++ready;
    while (ready < 3) std::this_thread::yield();
  });
}

TEST(Council, OneOfTwoGoesOnAlone) { EXPECT_EQ(ids(live_on(2, {3, 3}, {0})[1]), std::vector<MemberId>{101}); }

TEST(Council, EndsTheWaitsOfThoseWhoHaveNotNoticed) {
  World world = local_world(3);
  const View first = of(3);
  std::atomic<int> ready{0};
  on_threads(3, [&](Rank me) {
    Council council(*world[size_t(me)], options(first, me));
    Communicator comm(*world[size_t(me)], {.deadline = 20});
    ++ready;
    while (ready < 3) std::this_thread::yield();
    if (me == 2) return world[0]->mailbox().lose(2, "its process has ended", true);
    if (me == 1) {
      EXPECT_THROW(comm.take(0, 1, 0), EpochEnds)
          << "rank 1 does not miss rank 2, and hears of it from rank 0";
    }
    EXPECT_EQ(council.next(20).members.size(), 2u);
    EXPECT_THROW(council.complete_step(1, 0), EpochEnds);
  });
}

TEST(Council, TellsANewcomerOfTheViewThatItIsIn) {
  World world = local_world(2);
  const View first = of(2);
  on_threads(2, [&](Rank me) {
    std::optional<View> told;
    CouncilOptions o = options(first, me);
    o.decided = [&](const View& v) { told = v; };
    Council council(*world[size_t(me)], std::move(o));
    if (me == 1) council.admit({7, "card of a newcomer", false});
    const View next = council.next(20);
    EXPECT_EQ(ids(next), (std::vector<MemberId>{100, 101, 7}));
    EXPECT_EQ(next.members[2].card, "card of a newcomer");
    EXPECT_FALSE(next.members[2].has_state);
    ASSERT_TRUE(told);
    EXPECT_EQ(*told, next);
  });
}

TEST(Council, WhoLeavesIsToldSoAndTheOthersGoOn) {
  World world = local_world(3);
  const View first = of(3);
  on_threads(3, [&](Rank me) {
    Council council(*world[size_t(me)], options(first, me));
    if (me == 0) {
      council.leave();
      EXPECT_THROW(council.next(20), GivenUp);
    } else {
      EXPECT_EQ(ids(council.next(20)), (std::vector<MemberId>{101, 102}));
    }
  });
}

// One of three is lost while the run ends, when one has all that it needs and the other has not.
TEST(Council, WhoWaitsForAnotherEpochIsToldThatTheRunHasEnded) {
  World world = local_world(3);
  const View first = of(3);
  on_threads(3, [&](Rank me) {
    std::optional<End> told;
    CouncilOptions o = options(first, me);
    o.ended = [&](const End& e) { told = e; };
    {
      Council council(*world[size_t(me)], std::move(o));
      if (me == 0) council.end_run({.step = 25, .interrupted = true});
      if (me == 1) { EXPECT_THROW(council.next(20), RunEnded); }
    }
    world[size_t(me)].reset();
    if (me < 2) { EXPECT_EQ(told, (End{25, true})); }
  });
}

TEST(Council, WithoutAQuorumItSaysSoAndTheEpochCanBeEndedInGoodOrder) {
  World world = local_world(4);
  const View first = of(4);
  on_threads(4, [&](Rank me) {
    if (me >= 2) return;
    CouncilOptions o = options(first, me);
    o.is_gone = [](const std::string&) { return false; };
    Council council(*world[size_t(me)], std::move(o));
    for (const Rank silent : {2, 3}) world[size_t(me)]->mailbox().lose(silent, "not heard of", false);
    EXPECT_THROW(council.next(0.3), Timeout) << "two of four who are only silent";
    Communicator comm(*world[size_t(me)], {.deadline = 20});
    const auto living = comm.group({0, 1});
    living->barrier();
  });
}

// As where there is no descriptor left to ask with.
TEST(Council, WhoCannotBeAskedIsNotKnownToHaveEnded) {
  World world = local_world(3);
  CouncilOptions o = options(of(3), 0);
  o.is_gone = [](const std::string&) -> bool { throw Error("too many open files"); };
  Council council(*world[0], std::move(o));
  for (const Rank other : {1, 2}) world[0]->mailbox().lose(other, "hung up", true);
  EXPECT_THROW(council.next(0.3), Timeout);
}

TEST(Council, WhatItsThreadMeetsEndsTheWaitsOfItsMember) {
  World world = local_world(1);
  CouncilOptions o = options(of(1), 0);
  o.decided = [](const View&) { throw Error("no memory left"); };
  o.ends_waits = false;
  Council council(*world[0], std::move(o));
  council.admit({7, "card of a newcomer", false});
  Communicator c(*world[0], {.deadline = 20});
  try {
    c.take(0, 1, 0);
    FAIL() << "nobody has sent that";
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "the council has failed: no memory left"); }
}

TEST(Council, AsksLessAndLessOftenWhetherAProcessThatLivesHasEnded) {
  World world = local_world(3);
  const View first = of(3);
  std::map<std::string, int> asked;
  CouncilOptions o = options(first, 0);
  o.is_gone = [&](const std::string& card) { return ++asked[card], false; };
  {
    Council council(*world[0], std::move(o));
    for (const Rank other : {1, 2}) world[0]->mailbox().lose(other, "hung up", true);
    EXPECT_THROW(council.next(0.5), Timeout);
  }
  EXPECT_EQ(asked.size(), 2u);
  for (const auto& [card, times] : asked) EXPECT_TRUE(times > 1 && times < 10) << times;
}

}  // namespace
}  // namespace skein::comm
