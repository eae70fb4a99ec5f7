// When fresh workers take the places of dead ones: pauses and counts.
#include "apps/launch/crew/restarts.h"

#include <gtest/gtest.h>

namespace skein::apps {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(Restarts, PausesDoubleUpToTheLongest) {
  Restarts r(8, {});
  for (const int pause : {1, 2, 4, 8, 16, 30, 30, 30})
    EXPECT_EQ(r.after_death(2, seconds(5)), seconds(pause));
  EXPECT_FALSE(r.after_death(2, seconds(5)));
}

TEST(Restarts, SeatsAreCountedApart) {
  Restarts r(1, {});
  EXPECT_EQ(r.after_death(0, seconds(5)), seconds(1));
  EXPECT_EQ(r.after_death(3, seconds(5)), seconds(1));
  EXPECT_EQ(r.counted(0), 1);
  EXPECT_EQ(r.counted(1), 0);
  EXPECT_FALSE(r.after_death(0, seconds(5)));
}

TEST(Restarts, WhoHasLivedLongEnoughCountsAsTheFirst) {
  Restarts r(2, {});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(r.after_death(0, minutes(10)), seconds(1));
    EXPECT_EQ(r.after_death(0, minutes(10) - seconds(1)), seconds(2));
    EXPECT_FALSE(r.after_death(0, seconds(0)));
  }
}

TEST(Restarts, NoneMeansNobody) {
  Restarts r(0, {});
  EXPECT_FALSE(r.after_death(0, minutes(20)));
}

}  // namespace
}  // namespace skein::apps
