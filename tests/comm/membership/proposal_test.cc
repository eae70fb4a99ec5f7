// Proposal: the view that follows from promises.
#include "comm/membership/proposal.h"

#include <gtest/gtest.h>

namespace skein::comm {
namespace {

View voters(int n) {
  View v{.members = {}, .step = 3};
  for (int i = 0; i < n; ++i) v.members.push_back({MemberId(i + 1), "old"});
  return v;
}
Promise promised_state(int64_t completed, int64_t oldest, std::string card = "new") {
  Promise p;
  p.completed = completed, p.oldest = oldest, p.card = std::move(card);
  return p;
}

TEST(Proposal, ChoosesThoseThatPromisedAndTheFewestStepsThatOneOfThemCompleted) {
  const Roll roll(1, voters(4));
  Proposal p({1, 1}, 4, 0);
  p.promised(0, promised_state(9, 7));
  p.promised(2, promised_state(7, 6));
  p.promised(3, promised_state(8, 8));  // it cannot go back to 7
  p.choose(roll, true);
  EXPECT_EQ(p.value(), (View{2, {{1, "new", true}, {3, "new", true}, {4, "new", false}}, 7}));
  EXPECT_EQ(p.said(), Answers(4));  // votes are counted from here
}

TEST(Proposal, LeavesOutWhoLeavesOrIsDeadAndTakesInNewcomersOnce) {
  Roll roll(1, voters(4));
  roll.prove_dead(3), roll.suspect(8);
  Proposal p({1, 1}, 4, 0);
  for (int r = 0; r < 4; ++r) {
    Promise given = promised_state(5, 5);
    given.leaving = r == 1;
    given.waiting = {{9, "nine"}, {7, "seven"}, {8, "silent"}, {2, "a member"}};
    p.promised(r, std::move(given));
  }
  p.choose(roll, true);
  EXPECT_EQ(p.value(),
            (View{2, {{1, "new", true}, {4, "new", true}, {7, "seven", false}, {9, "nine", false}}, 5}));
}

TEST(Proposal, RepeatsTheLatestVote) {
  const Roll roll(1, voters(3));
  for (const bool heeds : {true, false}) {
    Proposal p({9, 1}, 3, 0);
    const View first{2, {{1, "a"}}, 1}, second{2, {{2, "b"}}, 1};
    Promise early = promised_state(5, 5), late = promised_state(5, 5);
    early.vote = Vote{{2, 3}, first}, late.vote = Vote{{3, 1}, second};
    p.promised(0, promised_state(5, 5)), p.promised(1, std::move(late)), p.promised(2, std::move(early));
    p.choose(roll, heeds);
    EXPECT_EQ(p.value() == second, heeds);
  }
}

TEST(Proposal, HasNoValueWhereAllLeave) {
  const Roll roll(1, voters(1));
  Proposal p({1, 1}, 1, 0);
  Promise given = promised_state(5, 5);
  given.leaving = true;
  p.promised(0, std::move(given));
  p.choose(roll, true);
  EXPECT_FALSE(p.value());
  EXPECT_TRUE(p.said()[0]);
}

TEST(Proposal, OfMembersWithoutStateBeginsWhereTheEpochDid) {
  const Roll roll(1, voters(1));
  Proposal p({1, 1}, 1, 0);
  p.promised(0, promised_state(3, kNoState));
  p.choose(roll, true);
  EXPECT_EQ(p.value(), (View{2, {{1, "new", false}}, 3}));
}

}  // namespace
}  // namespace skein::comm
