// Broadcasts, gathers and barriers with ranks as threads.
#include "tests/support/samples.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

class EveryWorld : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, EveryWorld, ::testing::Range(1, 10));

TEST_P(EveryWorld, BroadcastFromEveryRoot) {
  in_local_world(GetParam(), [](Communicator& c) {
    for (Rank root = 0; root < c.size(); ++root)
      for (int64_t n : {0, 5, 3000000 / c.size()}) {
        const Tensor x = vector_of(c.rank(), n);
        c.broadcast(x, root);
        for (int64_t i = 0; i < n; i += 997) ASSERT_EQ(x.data<float>()[i], sample(root, i));
      }
  });
}

TEST_P(EveryWorld, GatherKeepsUnevenSizesInRankOrder) {
  in_local_world(GetParam(), [](Communicator& c) {
    const Rank root = c.size() / 2;
    const auto all = c.gather(vector_of(c.rank(), 3 * c.rank()), root);
    ASSERT_EQ(int(all.size()), c.rank() == root ? c.size() : 0);
    for (Rank r = 0; r < int(all.size()); ++r) {
      ASSERT_EQ(all[size_t(r)].size(), 3 * r);
      for (int64_t i = 0; i < 3 * r; ++i) ASSERT_EQ(all[size_t(r)].data<float>()[i], sample(r, i));
    }
  });
}

TEST_P(EveryWorld, NobodyLeavesABarrierBeforeAllHaveEntered) {
  std::atomic<int> entered{0};
  const int n = GetParam();
  in_local_world(n, [&](Communicator& c) {
    for (int round = 1; round <= 20; ++round) {
      ++entered;
      c.barrier();
      ASSERT_GE(entered, round * n);
    }
  });
}

}  // namespace
}  // namespace skein::comm
