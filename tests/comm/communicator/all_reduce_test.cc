// Sums over all ranks against a scalar reference: their order, their bits, overlap with work, disagreement.
#include <cmath>

#include "tests/support/samples.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

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

class AllReduceIn : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, AllReduceIn, ::testing::Range(1, 10));

TEST_P(AllReduceIn, AllReduceSumsInRankOrderOverWindows) {
  in_local_world(GetParam(), [](Communicator& c) {
    for (int64_t n : {0, 1, 7, 1000, 2049, 100003}) expect_sums(c, n);
  });
}

TEST_P(AllReduceIn, AllReduceByMessagesGivesTheSameBits) {
  auto world = far_world(GetParam());
  in_world(world, [](Communicator& c) {
    for (int64_t n : {0, 1, 7, 2048, 2049, 300007}) expect_sums(c, n);
  });
}

TEST_P(AllReduceIn, AMeanIsTheSumDividedOnceHoweverItIsWaitedFor) {
  in_local_world(GetParam(), [](Communicator& c) {
    const Tensor x = vector_of(c.rank(), 1000), y = x.clone(), want = x.clone();
    c.all_reduce(want).wait();
    scale(want, 1.0 / c.size());
    Pending waited = c.mean(x), polled = c.mean(y);
    for (int twice = 0; twice < 2; ++twice) waited.wait();
    while (!polled.done()) std::this_thread::yield();
    EXPECT_TRUE(polled.done());
    for (int64_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(x.data<float>()[i], want.data<float>()[i]) << i;
      ASSERT_EQ(y.data<float>()[i], want.data<float>()[i]) << i;
    }
  });
}

TEST_P(AllReduceIn, AllReduceOverABf16WireIsTheSameOnAllRanksAndClose) {
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

TEST_P(AllReduceIn, SlicesReduceWhileWorkGoesOn) {
  for (const bool far : {false, true}) {
    auto world = far ? far_world(GetParam()) : local_world(GetParam());
    in_world(world, [](Communicator& c) {
      constexpr int64_t kSlices = 12, kSlice = 10000;
      const Tensor g = vector_of(c.rank(), kSlices * kSlice);
      Pendings sums;
      for (int64_t s = kSlices - 1; s >= 0; --s) {  // as backward makes them final
        sums += c.all_reduce(g.view({kSlice}, s * kSlice));
        c.progress();
      }
      sums.wait();
      for (int64_t i = 0; i < g.size(); ++i) ASSERT_EQ(g.data<float>()[i], sum_of(c.size(), i));
    });
  }
}

TEST_P(AllReduceIn, IntegersSumExactly) {
  in_local_world(GetParam(), [](Communicator& c) {
    const Tensor a = Tensor::of<int64_t>({2}, {int64_t(1) << 55, c.rank()}),
                 b = Tensor::of<int32_t>({1}, {c.rank() + 1});
    c.all_reduce(a).wait();
    c.all_reduce(b).wait();
    EXPECT_EQ(a.data<int64_t>()[0], (int64_t(1) << 55) * c.size());
    EXPECT_EQ(a.data<int64_t>()[1], c.size() * (c.size() - 1) / 2);
    EXPECT_EQ(*b.data<int32_t>(), c.size() * (c.size() + 1) / 2);
  });
}

TEST(AllReduce, OfDifferentSizesIsAnErrorOnBothEnds) {
  for (const bool far : {false, true}) {
    auto world = far ? far_world(2) : local_world(2);
    in_world(world, [](Communicator& c) {
      EXPECT_THROW(c.all_reduce(vector_of(0, 100 + c.rank())).wait(), Disagreement);
    });
  }
}

TEST(AllReduce, AgainstABarrierIsAnErrorOnBothEnds) {
  in_local_world(2, [](Communicator& c) {
    EXPECT_THROW(c.rank() == 0 ? c.barrier() : c.all_reduce(vector_of(0, 100)).wait(), Disagreement);
  });
}

TEST(AllReduce, InOneGroupDoesNotDisturbAnother) {
  in_local_world(4, [](Communicator& c) {
    const auto pair = c.group(c.rank() < 2 ? std::vector<Rank>{0, 1} : std::vector<Rank>{2, 3});
    const Tensor x = vector_of(c.rank(), 3000), y = vector_of(c.rank(), 3000);
    Pendings both;
    both += c.all_reduce(x);
    both += pair->all_reduce(y);
    both.wait();
    for (int64_t i = 0; i < 3000; ++i) {
      const Rank a = c.rank() / 2 * 2;
      ASSERT_EQ(x.data<float>()[i], sum_of(4, i));
      ASSERT_EQ(y.data<float>()[i], sample(a, i) + sample(a + 1, i));
    }
  });
}

}  // namespace
}  // namespace skein::comm
