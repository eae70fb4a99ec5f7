// Roll: facts about members and newcomers, and what is counted from them.
#include "comm/membership/roll.h"

#include <gtest/gtest.h>

namespace skein::comm {
namespace {

View roll_of(int n) {
  View v;
  for (int i = 0; i < n; ++i) v.members.push_back({MemberId(i + 1), "card"});
  return v;
}

std::vector<MemberId> names_in(const std::vector<View::Member>& members) {
  std::vector<MemberId> all;
  for (const View::Member& m : members) all.push_back(m.id);
  return all;
}

// Whatever is known of three members, each in one of five conditions, the census is the plain count.
TEST(Roll, CountsMembersThatHaveAVote) {
  constexpr int kConditions = 5;  // well, suspected, dead, leaving, never came
  for (int code = 0; code < kConditions * kConditions * 8; ++code) {
    Roll roll(1, roll_of(3));
    const int how[] = {0, code / 8 % kConditions, code / 8 / kConditions};
    Answers said(3);
    int members = 3, yes = 0, dead = 0;
    bool all = true;
    for (int r = 0; r < 3; ++r) {
      const auto m = MemberId(r + 1);
      said[size_t(r)] = (code >> r & 1) != 0;
      EXPECT_EQ(how[r] == 1, how[r] == 1 && roll.suspect(m));
      EXPECT_EQ(how[r] == 2, how[r] == 2 && roll.prove_dead(m));
      if (how[r] == 3) roll.leaves(m);
      if (how[r] == 4) roll.never_came(m), --members;
      if (how[r] == 4) continue;
      yes += said[size_t(r)], dead += how[r] == 2;
      all = all && (said[size_t(r)] || how[r] == 2);
    }
    const Census c = roll.census(said);
    EXPECT_EQ(c.members, members) << code;
    EXPECT_EQ(c.said, yes) << code;
    EXPECT_EQ(c.dead, dead) << code;
    EXPECT_EQ(c.all_others, all) << code;
    EXPECT_EQ(roll.differs_from_view(), how[1] != 0 || how[2] != 0) << code;
  }
}

TEST(Roll, TellsOfALossOnce) {
  Roll roll(2, roll_of(3));
  EXPECT_TRUE(roll.suspect(1));
  EXPECT_FALSE(roll.suspect(1));
  EXPECT_EQ(roll.in_front(), 0);
  EXPECT_EQ(roll.heard(), (Answers{false, true, true}));
  roll.trust(1);
  EXPECT_EQ(roll.heard(), Answers(3, true));
  EXPECT_EQ(roll.in_front(), 1);
  EXPECT_TRUE(roll.prove_dead(1));
  EXPECT_FALSE(roll.prove_dead(1));
  EXPECT_FALSE(roll.heard()[0]);
  EXPECT_EQ(roll.in_front(), 0);
  EXPECT_FALSE(roll.suspect(2));  // a member is there for itself
  EXPECT_ANY_THROW(roll.prove_dead(2));
}

TEST(Roll, KeepsNewcomersUntilTheyAreKnownToBeGone) {
  Roll roll(1, roll_of(2));
  EXPECT_FALSE(roll.differs_from_view());
  for (const MemberId m : {9, 7, 8}) roll.joins({m, "card"});
  roll.joins({2, "a member is no newcomer"});
  roll.joins({6, std::string(kLongestCard + 1, 'x')});
  EXPECT_TRUE(roll.differs_from_view());
  EXPECT_EQ(names_in(roll.newcomers()), (std::vector<MemberId>{7, 8, 9}));
  roll.suspect(8);  // it may be heard again
  EXPECT_EQ(names_in(roll.newcomers()), (std::vector<MemberId>{7, 9}));
  EXPECT_FALSE(roll.may_come(8));
  roll.trust(8);
  roll.prove_dead(9), roll.leaves(7);
  EXPECT_EQ(names_in(roll.newcomers()), std::vector<MemberId>{8});
  EXPECT_EQ(roll.waiting().size(), 1u);
  EXPECT_FALSE(roll.may_come(7) || roll.may_come(9) || roll.may_come(2));
}

TEST(Roll, AwaitsTheSilentForAShorterTime) {
  Roll roll(1, roll_of(3));
  const Answers said{true, false, true};
  EXPECT_TRUE(roll.awaits(said, 1, 2, 0.1));
  EXPECT_FALSE(roll.awaits(said, 2, 2, 0.1));
  roll.suspect(2);
  EXPECT_TRUE(roll.awaits(said, 0.05, 2, 0.1));
  EXPECT_FALSE(roll.awaits(said, 0.1, 2, 0.1));
  roll.prove_dead(2);
  EXPECT_FALSE(roll.awaits(said, 0, 2, 0.1));
}

TEST(Roll, StaysWhileOneMemberDoes) {
  Roll roll(1, roll_of(3));
  roll.leaves(1), roll.prove_dead(2);
  EXPECT_TRUE(roll.anybody_stays());
  roll.leaves(3);
  EXPECT_FALSE(roll.anybody_stays());
}

}  // namespace
}  // namespace skein::comm
