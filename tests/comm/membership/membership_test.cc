// Membership: who is alive, gone or lost, for which reason, and which epochs are welcome.
#include "comm/membership/membership.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/files.h"

namespace skein::comm {
namespace {

using testing::message_of;

TEST(Membership, KeepsTheFirstReasonOfALoss) {
  Membership m(3);
  EXPECT_FALSE(m.any_lost());
  m.lose(1, "it died", true, 0.25);
  m.lose(1, "it is silent", false, 2);
  m.leave(1);
  m.fail(1);
  EXPECT_EQ(m.why(1), "it died");
  EXPECT_EQ(m.silent_for(1), 0.25);
  EXPECT_TRUE(m.lost(1) && m.ended(1) && !m.alive(1) && m.any_lost());
  m.lose(0, "it is silent");
  EXPECT_TRUE(m.lost(0) && !m.ended(0));
  EXPECT_FALSE(m.silent_for(0) || m.silent_for(2));
  EXPECT_EQ(m.dead(), (std::vector<Rank>{0, 1}));
  EXPECT_EQ(message_of<PeerLost>([&] { m.require(1); }), "rank 1 is lost: it died");
  EXPECT_NO_THROW(m.require(2));
}

TEST(Membership, WhoSaidGoodbyeIsGoneAndNotLost) {
  Membership m(2);
  m.leave(1);
  m.lose(1, "it hung up");
  EXPECT_TRUE(m.ended(1) && !m.alive(1) && !m.lost(1) && !m.any_lost());
  EXPECT_TRUE(m.dead().empty());
  EXPECT_EQ(message_of<PeerLost>([&] { m.require(1); }), "rank 1 has gone: it has ended its work");
}

// The time between the two is for ranks that are about to meet the same error.
TEST(Membership, AnErrorBecomesALossAfterSomeSeconds) {
  Membership m(2);
  const auto began = Clock::now();
  m.fail(1);
  EXPECT_EQ(m.why(1), "it has ended with an error");
  while (!m.lost(1) && Clock::now() - began < std::chrono::seconds(60)) {
    m.settle();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GE(Clock::now() - began, std::chrono::seconds(2));
  EXPECT_GE(m.silent_for(1), 2);
  EXPECT_EQ(m.dead(), (std::vector<Rank>{1}));
  EXPECT_EQ(m.why(1), "it has ended with an error");
}

}  // namespace
}  // namespace skein::comm
