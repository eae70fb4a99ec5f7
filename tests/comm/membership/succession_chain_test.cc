// SuccessionChain: what stays true from one epoch's Succession to the next.
#include "comm/membership/succession_chain.h"

#include <gtest/gtest.h>

namespace skein::comm {
namespace {

const View kPair{1, {{1, "a"}, {2, "b"}}, 0};

std::vector<MemberId> ids(const View& v) {
  std::vector<MemberId> all;
  for (const View::Member& m : v.members) all.push_back(m.id);
  return all;
}

// Member 1 alone: who it needs for a quorum has been proven dead.
struct Survivor {
  explicit Survivor(const View& first = kPair, SuccessionChain::HasRegister has_register = {})
      : chain(1, "new card", first, std::move(has_register)) {}
  void lose(MemberId m) { chain->suspect(m), chain.bury(m); }
  // So many seconds, without the others' letters. How often the chain has gone on.
  int pass(double seconds) {
    int views = 0;
    for (const double end = now + seconds; now < end; now += 0.05)
      (void)chain->tick(now), views += chain.advance();
    return views;
  }
  double now = 0;
  SuccessionChain chain;
};

TEST(SuccessionChain, GoesOnOnceAViewIsDecidedAndNotBefore) {
  Survivor s;
  EXPECT_EQ(s.pass(10), 0);
  EXPECT_TRUE(!s.chain.decided() && s.chain.is_at(kPair) && !s.chain.is_past(kPair));
  s.lose(2);
  EXPECT_EQ(s.pass(10), 1);
  ASSERT_TRUE(s.chain.decided());
  EXPECT_EQ(*s.chain.decided(), (View{2, {{1, "new card"}}, 0}));
  EXPECT_EQ(s.chain->now(), *s.chain.decided());
  EXPECT_FALSE(s.chain->frozen());
  EXPECT_TRUE(s.chain.is_at(*s.chain.decided()) && s.chain.is_past(kPair) && !s.chain.is_at(kPair));
  EXPECT_FALSE(s.chain.is_past(*s.chain.decided()));
}

// Who knocks is in the second view. In the third, the dead one has not come back, though it knocks.
TEST(SuccessionChain, TakesNewcomersIntoTheNextViewAndTheDeadIntoNone) {
  Survivor s;
  s.lose(2);
  EXPECT_TRUE(s.chain.is_dead(2));
  s.chain->joins({7, "seven"});
  EXPECT_EQ(s.pass(10), 1);
  EXPECT_EQ(ids(s.chain->now()), (std::vector<MemberId>{1, 7}));
  s.chain->joins({2, "b"});
  s.lose(7);
  EXPECT_EQ(s.pass(10), 1);
  EXPECT_EQ(s.chain->now().epoch, 3u);
  EXPECT_EQ(ids(s.chain->now()), std::vector<MemberId>{1});
}

TEST(SuccessionChain, WhoKnocksWhileTheNextViewIsBeingDecidedIsInTheOneAfter) {
  Survivor s;
  s.lose(2);
  for (; !s.chain->next(); s.now += 0.05) (void)s.chain->tick(s.now);
  s.chain->joins({7, "seven"});
  EXPECT_TRUE(s.chain.advance());
  EXPECT_EQ(ids(s.chain->now()), std::vector<MemberId>{1});
  EXPECT_EQ(s.pass(10), 1);
  EXPECT_EQ(ids(s.chain->now()), (std::vector<MemberId>{1, 7}));
}

TEST(SuccessionChain, ARunThatHasEndedHasEndedInLaterEpochsToo) {
  Survivor s;
  s.lose(2);
  for (; !s.chain->next(); s.now += 0.05) (void)s.chain->tick(s.now);
  (void)s.chain->end({.step = 25});
  EXPECT_TRUE(s.chain.advance());
  EXPECT_EQ(s.chain->ended(), End{.step = 25});
}

TEST(SuccessionChain, WhoIsLeftOutGoesNoFurther) {
  Survivor s;
  const View without{2, {{2, "b"}}, 5}, with{3, {{1, "a", false}, {2, "b"}}, 9};
  (void)s.chain->receive(2, without.write());
  EXPECT_FALSE(s.chain.advance());
  EXPECT_TRUE(s.chain.excluded());
  EXPECT_FALSE(s.chain.decided());
  EXPECT_TRUE(s.chain.is_past(kPair) && !s.chain.is_at(kPair));
  (void)s.chain->receive(2, with.write());
  EXPECT_FALSE(s.chain.advance());
  EXPECT_TRUE(s.chain.excluded());
}

// In the first epoch a register decides, in the second the members do.
TEST(SuccessionChain, AsksForEachViewWhetherARegisterDecides) {
  Survivor s(kPair, [](const View& v) { return v.epoch == 1; });
  s.lose(2);
  EXPECT_EQ(s.pass(10), 0);
  const auto wish = s.chain->wants_register();
  ASSERT_TRUE(wish);
  (void)s.chain->register_says({2, {{1, "a"}, {7, "seven", false}}, 0});
  EXPECT_TRUE(s.chain.advance());
  s.lose(7);
  EXPECT_EQ(s.pass(10), 1);
  EXPECT_EQ(s.chain->now().epoch, 3u);
}

TEST(SuccessionChain, AnotherChainGoesOnWithWhatWasPromised) {
  Survivor s;
  Content prepare;
  prepare.word = Word::kPrepare, prepare.epoch = 1, prepare.ballot = {5, 2};
  EXPECT_EQ(s.chain->receive(2, prepare.write()).size(), 1u);
  SuccessionChain next(1, "a", kPair, {}, s.chain.release());
  EXPECT_TRUE(next->frozen());
  prepare.ballot.round = 4;
  const std::vector<Letter> answers = next->receive(2, prepare.write());
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(Content::read(answers[0].bytes)->word, Word::kRefused);
}

}  // namespace
}  // namespace skein::comm
