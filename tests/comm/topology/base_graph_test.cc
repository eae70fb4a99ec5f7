// The base graph: it is exact after one cycle.
#include <gtest/gtest.h>

#include "comm/topology/topology.h"
#include "tests/support/numbers/matrices.h"

namespace skein::comm {
namespace {

TEST(BaseGraph, IsExactInOneCycleAtAnySize) {
  for (int n = 2; n <= 40; ++n)
    for (int k = 1; k <= 6; ++k) {
      TopologyOptions o;
      o.base = k;
      const auto t = make_topology("base", o, n);
      EXPECT_LT(off_the_mean(*t, t->cycle()), 1e-12) << n << ' ' << k;
      EXPECT_TRUE(t->symmetric());
      for (int64_t q = 0; q < t->cycle(); ++q)
        for (Rank r = 0; r < n; ++r) {
          EXPECT_LE(int(t->at(r, q).out.size()), k);
          EXPECT_GE(t->at(r, q).self, -1e-15);
        }
    }
}

}  // namespace
}  // namespace skein::comm
