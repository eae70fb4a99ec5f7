// Acceptor: what is promised holds.
#include "comm/membership/acceptor.h"

#include <gtest/gtest.h>

namespace skein::comm {
namespace {

TEST(Acceptor, FollowsBallotsThatNeverFall) {
  for (uint64_t seed = 1; seed < 200; ++seed) {
    Acceptor a({1, "card", true}, 5);
    Ballot highest;
    for (uint64_t i = 0, state = seed; i < 20; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;
      const Ballot b{1 + (state >> 33) % 6, 1 + (state >> 40) % 3};
      EXPECT_EQ(a.follow(b), b >= highest);
      highest = std::max(highest, b);
      EXPECT_EQ(a.promised(), highest);
    }
  }
}

TEST(Acceptor, VotesInTheBallotThatItFollows) {
  Acceptor a({1, "card", true}, 5);
  EXPECT_FALSE(a.has_promised());
  EXPECT_TRUE(a.follow({3, 2}));
  const View v{2, {{1, "card"}}, 5};
  a.vote(v);
  EXPECT_TRUE(a.has_promised());
  EXPECT_EQ(a.own().vote->ballot, (Ballot{3, 2}));
  EXPECT_EQ(a.own().vote->view, v);
}

TEST(Acceptor, CompletesNoStepOnceItHasPromised) {
  Acceptor a({1, "card", true}, 5);
  a.complete_step(6, 5);
  EXPECT_ANY_THROW(a.complete_step(5, 5));
  EXPECT_ANY_THROW(a.complete_step(7, 8));
  EXPECT_TRUE(a.follow({1, 1}));
  EXPECT_ANY_THROW(a.complete_step(7, 7));
  EXPECT_EQ(a.own().completed, 6);
  EXPECT_EQ(a.own().oldest, 5);
}

TEST(Acceptor, OfANewcomerHasNoStateUntilItIsRestored) {
  Acceptor a({9, "card", false}, 5);
  EXPECT_EQ(a.own().oldest, kNoState);
  a.restored();
  EXPECT_EQ(a.own().oldest, 5);
  a.complete_step(7, 6);
  a.restored();  // told twice
  EXPECT_EQ(a.own().oldest, 6);
}

}  // namespace
}  // namespace skein::comm
