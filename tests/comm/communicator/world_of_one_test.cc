// A world of one rank.
#include "comm/communicator/world_of_one.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace skein::comm {
namespace {

TEST(WorldOfOne, CollectivesReturnAtOnceAndLeaveEveryBit) {
  WorldOfOne alone({.wire = kBF16});
  Communicator& c = alone;
  const Tensor x = Tensor::of<float>({4}, {1.f / 3, -0.f, 1e-40f, NAN}), before = x.clone();
  EXPECT_TRUE(c.all_reduce(x).done());
  c.broadcast(x, 0);
  c.barrier();
  EXPECT_EQ(std::memcmp(x.raw(), before.raw(), size_t(x.bytes())), 0);
  const std::vector<Tensor> gathered = c.gather(x, 0);
  ASSERT_EQ(gathered.size(), 1u);
  EXPECT_NE(gathered[0].raw(), x.raw());
  EXPECT_EQ(std::memcmp(gathered[0].raw(), before.raw(), size_t(x.bytes())), 0);
  EXPECT_EQ(c.meter().traffic().messages, 0);
  EXPECT_THROW(c.all_reduce(Tensor({1}, kU8)), Error);
  EXPECT_THROW(c.broadcast(x, 1), Error);
}

}  // namespace
}  // namespace skein::comm
