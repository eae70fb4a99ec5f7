// Backoff: when members propose.
#include "comm/membership/backoff.h"

#include <gtest/gtest.h>

#include <set>

namespace skein::comm {
namespace {

// The time at which a member proposes if a change is due from 0 on, in thousandths of a patience of 1 s.
int first_proposal(Backoff backoff, int in_front, double place) {
  for (int ms = 0; ms < 100000; ++ms)
    if (backoff.is_time(ms / 1000., 1, in_front, place)) return ms;
  return -1;
}

TEST(Backoff, ProposesAtOnceUnlessOthersAreInFront) {
  EXPECT_EQ(first_proposal({}, 0, 0), 0);
  for (int n = 1; n <= 8; ++n) EXPECT_EQ(first_proposal({}, n, 0.5), 1000 * n);
  EXPECT_EQ(first_proposal({}, 100, 0.5), 8000);
}

TEST(Backoff, AfterAnAttemptNoTwoMembersWaitEquallyLongAndAllLonger) {
  Backoff backoff;
  int last = 0;
  for (int failed = 0; failed < 3; ++failed) {
    backoff.yield_to({1, 9}, true);
    std::set<int> times;
    for (int rank = 0; rank < 16; ++rank) times.insert(first_proposal(backoff, rank, rank / 16.));
    EXPECT_EQ(times.size(), 16u);
    EXPECT_GT(*times.begin(), last);
    last = *times.begin();
  }
  for (int i = 0; i < 100; ++i) backoff.yield_to({1, 9}, true);
  EXPECT_EQ(first_proposal(backoff, 0, 0), last);  // but not ever longer
}

TEST(Backoff, DoesNotWaitForAProposerThatIsLost) {
  Backoff backoff;
  backoff.yield_to({1, 9}, false);
  EXPECT_EQ(first_proposal(backoff, 0, 0), 1000);
  backoff.stop_yielding_to(8);
  EXPECT_EQ(first_proposal(backoff, 0, 0), 1000);
  backoff.stop_yielding_to(9);
  EXPECT_EQ(first_proposal(backoff, 0, 0), 0);
}

TEST(Backoff, CountsFromWhenAChangeBecameDue) {
  Backoff backoff;
  EXPECT_FALSE(backoff.is_time(10, 1, 1, 0));
  EXPECT_FALSE(backoff.is_time(10.9, 1, 1, 0));
  EXPECT_TRUE(backoff.is_time(11, 1, 1, 0));
  backoff.nothing_is_due();
  EXPECT_FALSE(backoff.is_time(20, 1, 1, 0));
}

TEST(Backoff, KeepsTheHighestRoundItWasRefusedFor) {
  Backoff backoff;
  for (const uint64_t round : {3, 7, 5}) backoff.refused_for({round, 1});
  EXPECT_EQ(backoff.refused(), 7u);
}

}  // namespace
}  // namespace skein::comm
