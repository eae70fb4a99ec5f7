// Outage: from when to when a member's suspicions are in doubt.
#include "comm/membership/outage.h"

#include <gtest/gtest.h>

namespace skein::comm {
namespace {

TEST(Outage, CastsDoubtUntilATermAfterAQuorumIsHeardAgain) {
  Outage o;
  o.hears_quorum(true, 1);
  EXPECT_FALSE(o.casts_doubt(1, 2));
  o.hears_quorum(false, 3);
  EXPECT_TRUE(o.casts_doubt(3, 2) && o.casts_doubt(100, 2));
  o.hears_quorum(true, 100);
  o.hears_quorum(true, 101);
  EXPECT_TRUE(o.casts_doubt(101.9, 2));
  EXPECT_FALSE(o.casts_doubt(102, 2));
}

TEST(Outage, NeitherLastsLongerNorComesBackWhenTheQuorumIsLostAgain) {
  Outage o;
  o.hears_quorum(false, 0);
  for (double now = 1; now < 10; now += 0.5) o.hears_quorum(int(2 * now) % 2 == 0, now);
  EXPECT_TRUE(o.casts_doubt(2.9, 2));
  EXPECT_FALSE(o.casts_doubt(3, 2) || o.casts_doubt(10, 2));
}

}  // namespace
}  // namespace skein::comm
