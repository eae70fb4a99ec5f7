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

// out <- 10 out + x
void scale_and_add(const Tensor& out, const Tensor& x) {
  int32_t* const to = out.data<int32_t>();
  for (int64_t i = 0; i < x.size(); ++i) to[i] = 10 * to[i] + x.data<int32_t>()[i];
}

TEST_P(EveryWorld, CombinesWhatAllHaveInRankOrder) {
  in_local_world(GetParam(), [](Communicator& c) {
    for (int64_t n : {0, 1, 100000}) {
      Tensor mine({n}, kI32);
      for (int64_t i = 0; i < n; ++i) mine.data<int32_t>()[i] = c.rank() + 1;
      const Tensor digits = c.combine(mine, [&](const std::vector<Tensor>& all) {
        const Tensor out = Tensor::zeros({n}, kI32);
        for (const Tensor& x : all) scale_and_add(out, x);
        return out;
      });
      int32_t all = 0;
      for (Rank r = 0; r < c.size(); ++r) all = 10 * all + r + 1;
      ASSERT_EQ(digits.size(), n);
      for (int64_t i = 0; i < n; i += 97) ASSERT_EQ(digits.data<int32_t>()[i], all);
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
