// The average of a pair in shared memory.
#include "comm/average/in_place.h"

#include "tests/support/sim.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

Tensor vector_of(Rank r, int64_t n) {
  const Tensor x({n});
  for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = float(r + 1) / float(i + 3);
  return x;
}

// Whatever the wire rounds, memory does not.
TEST(AverageInPlace, IsTheExactMeanOnBothSides) {
  for (const int64_t n : {int64_t(1), int64_t(10001), int64_t(200000)}) {
    const std::vector<Tensor> x = {vector_of(0, n), vector_of(1, n)};
    in_local_world(2,
                   [&](Communicator& c) {
                     EXPECT_TRUE(share_memory(c, 1 - c.rank()));
                     average_in_place(c, 1 - c.rank(), x[size_t(c.rank())], 2, 0);
                   },
                   {.deadline = 20, .wire = kBF16});
    const Tensor a = vector_of(0, n), b = vector_of(1, n);
    for (const Tensor& y : x)
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(y.data<float>()[i], 0.5f * (a.data<float>()[i] + b.data<float>()[i])) << i << " of " << n;
  }
}

TEST(AverageInPlace, IsRefusedWhereNoMemoryIsShared) {
  sim::in_sim_world(2, {}, [](Communicator& c) {
    EXPECT_FALSE(share_memory(c, 1 - c.rank()));
    EXPECT_THROW(average_in_place(c, 1 - c.rank(), vector_of(0, 10), 2, 0), Error);
  });
}

}  // namespace
}  // namespace skein::comm
