// Collectives with ranks as threads: sums against a scalar reference, order, overlap, disagreement.
#include "comm/sum.h"
#include "tests/world.h"

namespace skein::comm {
namespace {

// A number that floating addition does not like to be reordered with.
// Not inlined: fused with an addition that follows, its product would keep bits that stored numbers have lost.
[[gnu::noinline]] float sample(Rank r, int64_t i) {
  return float((r * 7919 + i * 104729) % 1000003) * (i % 3 ? 1e-3f : 1e3f) / float(r + 1);
}

Tensor vector_of(Rank r, int64_t n) {
  Tensor x({n});
  for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = sample(r, i);
  return x;
}
float sum_of(int ranks, int64_t i) {
  float s = sample(0, i);
  for (Rank r = 1; r < ranks; ++r) s += sample(r, i);
  return s;
}

// A transport that hides that memory is shared, so that messages carry everything.
class FarTransport final : public Transport {
 public:
  FarTransport(std::unique_ptr<Transport> inner, bool pieces) : inner_(std::move(inner)), pieces_(pieces) {}
  Rank rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Endpoint& to(Rank r) override { return inner_->to(r); }
  Mailbox& mailbox() override { return inner_->mailbox(); }
  void wait(const Key& k, Clock::time_point until) override { inner_->wait(k, until); }
  bool in_pieces(Rank) const override { return pieces_; }

 private:
  std::unique_ptr<Transport> inner_;
  const bool pieces_;
};
std::vector<std::unique_ptr<Transport>> far_world(int n) {
  auto world = local_world(n);
  for (auto& t : world) t = std::make_unique<FarTransport>(std::move(t), false);
  return world;
}

void expect_sums(Communicator& c, int64_t n) {
  const Tensor x = vector_of(c.rank(), n);
  c.all_reduce(x).wait();
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(x.data<float>()[i], sum_of(c.size(), i)) << "element " << i << " of " << n;
}

class EveryWorld : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, EveryWorld, testing::Range(1, 10));

TEST_P(EveryWorld, AllReduceSumsInRankOrderOverWindows) {
  in_local_world(GetParam(), [](Communicator& c) {
    for (int64_t n : {0, 1, 7, 1000, 2049, 100003}) expect_sums(c, n);
  });
}

TEST_P(EveryWorld, AllReduceByMessagesGivesTheSameBits) {
  auto world = far_world(GetParam());
  in_world(world, [](Communicator& c) {
    for (int64_t n : {0, 1, 7, 2048, 2049, 600007}) expect_sums(c, n);
  });
}

TEST_P(EveryWorld, AllReduceOverABf16WireIsTheSameOnAllRanksAndClose) {
  auto world = far_world(GetParam());
  std::vector<Tensor> seen(static_cast<size_t>(GetParam()));
  for (int64_t n : {100, 5000}) {
    in_world(world,
             [&](Communicator& c) {
               seen[size_t(c.rank())] = vector_of(c.rank(), n);
               c.all_reduce(seen[size_t(c.rank())]).wait();
             },
             {.deadline = 20, .wire = kBF16});
    for (int64_t i = 0; i < n; ++i) {
      const float s = sum_of(GetParam(), i);
      ASSERT_NEAR(seen[0].data<float>()[i], s, 0.01f * std::abs(s) + 1e-6f);
      for (const Tensor& t : seen) ASSERT_EQ(t.data<float>()[i], seen[0].data<float>()[i]);
    }
  }
}

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
