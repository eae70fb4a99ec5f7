// Between its points a share follows the logarithm of the bytes.
#include "comm/sim/shared_rate.h"

#include <gtest/gtest.h>

namespace skein::comm::sim {
namespace {

TEST(SharedRate, IsEverythingWithoutPoints) {
  EXPECT_EQ(SharedRate().left(1e6), 1);
  EXPECT_FALSE(SharedRate().is_less());
}

TEST(SharedRate, OfOnePointHoldsForAllMessages) {
  const SharedRate half{{{1000, 0.5}}};
  for (const double bytes : {0.0, 1000.0, 1e9}) EXPECT_EQ(half.left(bytes), 0.5) << bytes;
  EXPECT_TRUE(half.is_less());
}

TEST(SharedRate, ChangesWithTheLogarithmOfTheBytes) {
  const SharedRate s{{{1e3, 1}, {1e5, 0.8}, {1e6, 0.5}}};
  EXPECT_EQ(s.left(10), 1);
  EXPECT_EQ(s.left(1e3), 1);
  EXPECT_NEAR(s.left(1e4), 0.9, 1e-12);
  EXPECT_NEAR(s.left(1e5), 0.8, 1e-12);
  EXPECT_NEAR(s.left(1e5 * 3.1622776601683795), 0.65, 1e-12);
  EXPECT_EQ(s.left(1e6), 0.5);
  EXPECT_EQ(s.left(1e12), 0.5);
}

}  // namespace
}  // namespace skein::comm::sim
