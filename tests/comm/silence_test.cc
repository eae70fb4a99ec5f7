// How long a peer may be silent: as the pauses that it has made say, and no constant.
#include "comm/silence.h"

#include <gtest/gtest.h>

namespace skein::comm {
namespace {

constexpr Clock::time_point kBegin{};
Clock::time_point at(double seconds) {
  return kBegin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Heard every `pause` seconds, from one second to another.
void listen(Silence& s, double pause, double from, double to) {
  for (double t = from + pause; t <= to; t += pause) s.heard(at(t));
}

TEST(Silence, IsTheMostForAPeerThatIsNotKnownYet) {
  Silence s({2, 10}, kBegin);
  listen(s, 0.2, 0, 9.9);
  EXPECT_EQ(s.limit(at(9.9)), 10);
  EXPECT_EQ(s.limit(at(10)), 2);
}

TEST(Silence, IsFourTimesTheLongestPauseWithinItsBounds) {
  Silence s({2, 10}, kBegin);
  listen(s, 0.2, 0, 20);
  EXPECT_FALSE(s.is_over(at(21.9)));
  EXPECT_TRUE(s.is_over(at(22.1)));
  s.heard(at(21));
  EXPECT_NEAR(s.limit(at(21)), 4, 0.2);
  s.heard(at(24.9));
  EXPECT_EQ(s.limit(at(25)), 10);
}

TEST(Silence, ForgetsAPauseAfterFiveToTenMinutes) {
  Silence s({2, 10}, kBegin);
  listen(s, 1, 0, 20);
  listen(s, 0.2, 20, 299);
  EXPECT_EQ(s.limit(at(299)), 4);
  listen(s, 0.2, 299, 599);
  EXPECT_EQ(s.limit(at(599)), 4);
  listen(s, 0.2, 599, 602);
  EXPECT_EQ(s.limit(at(602)), 2);
  s.heard(at(1300));  // a rank that was silent for so long was lost, but others may have a longer bound
  EXPECT_EQ(s.limit(at(1300)), 10);
}

TEST(Silence, CountsNoTimeInWhichNobodyListened) {
  Silence s({2, 10}, kBegin);
  listen(s, 0.2, 0, 20);
  s.excuse(at(50));
  EXPECT_FALSE(s.is_over(at(51)));
  s.heard(at(50.3));
  EXPECT_EQ(s.limit(at(51)), 2);
}

TEST(Silence, WithEqualBoundsIsFixed) {
  Silence s({3, 3}, kBegin);
  listen(s, 0.1, 0, 100);
  EXPECT_EQ(s.limit(at(100)), 3);
}

}  // namespace
}  // namespace skein::comm
