// Random matchings.
#include <gtest/gtest.h>

#include "comm/topology/topology.h"
#include "tests/support/numbers/matrices.h"

namespace skein::comm {
namespace {

TEST(Topology, RandomMatchingsReplayAndDifferBySeedEpochAndGossip) {
  TopologyOptions o = peers(3);
  o.seed = 5;
  const auto a = make_topology("random", o, 9), again = make_topology("random", o, 9);
  o.epoch = 1;
  const auto later = make_topology("random", o, 9);
  o.epoch = 0, o.seed = 6;
  const auto other = make_topology("random", o, 9);
  for (int64_t q = 0; q < 20; ++q) EXPECT_EQ(matrix(*a, q), matrix(*again, q));
  EXPECT_NE(matrix(*a, 0), matrix(*a, 1));
  EXPECT_NE(matrix(*a, 0), matrix(*later, 0));
  EXPECT_NE(matrix(*a, 0), matrix(*other, 0));
}

}  // namespace
}  // namespace skein::comm
