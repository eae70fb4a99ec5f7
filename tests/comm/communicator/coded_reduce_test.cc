// Sums that travel coded: the same bits everywhere, two roundings, and nothing lost.
#include <cmath>

#include "comm/communicator/coding.h"
#include "engine/random.h"
#include "engine/vectors/vec.h"
#include "tests/support/numbers/difference.h"
#include "tests/support/sim.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

constexpr Codec kCodecs[] = {{Codec::kInt8}, {Codec::kInt4}, {Codec::kTopK, 0.05}};

Tensor numbers(int rank, uint64_t step, int64_t n) {
  const Tensor x({n});
  fill_normal(x, {.seed = 3, .purpose = Purpose::kTest, .step = step, .lane = uint32_t(rank)}, 0, 1);
  return x;
}
std::vector<float> listed(const Tensor& x) { return {x.data<float>(), x.data<float>() + x.size()}; }

// x <- the sum over all ranks.
void sum(Communicator& c, const Tensor& x, const Coding& coding) {
  c.mean(x, coding).wait();
  scale(x, float(c.size()));
}

class CodedReduce : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, CodedReduce, testing::Range(1, 7));

TEST_P(CodedReduce, AllRanksHaveTheSameBitsAndOweWhatTheyHaveNotSaid) {
  const int n = GetParam();
  for (const Codec& codec : kCodecs)
    for (const int64_t size : {1, 300, 5000, 40000}) {
      std::vector<std::vector<float>> sums(static_cast<size_t>(n)), owed(sums);
      std::vector<double> want(size_t(size), 0.0), said(want);
      constexpr uint64_t kSteps = 4;
      for (int r = 0; r < n; ++r)
        for (uint64_t k = 0; k < kSteps; ++k) {
          const Tensor x = numbers(r, k, size);
          for (int64_t i = 0; i < size; ++i) want[size_t(i)] += x.data<float>()[i];
        }
      in_local_world(n, [&](Communicator& c) {
        const Coding coding{codec, Tensor::zeros({size})};
        for (uint64_t k = 0; k < kSteps; ++k) {
          const Tensor x = numbers(c.rank(), k, size);
          sum(c, x, coding);
          if (c.rank() == 0)
            for (int64_t i = 0; i < size; ++i) said[size_t(i)] += x.data<float>()[i];
          sums[size_t(c.rank())] = listed(x);
        }
        owed[size_t(c.rank())] = listed(coding.residual);
      });
      for (int r = 1; r < n; ++r)
        EXPECT_EQ(sums[size_t(r)], sums[0]) << n << ' ' << int(codec.kind) << ' ' << size;
      for (size_t i = 0; i < size_t(size); ++i) {
        double left = 0;
        for (const auto& theirs : owed) left += theirs[i];
        ASSERT_NEAR(want[i] - said[i], left, 1e-5) << n << ' ' << int(codec.kind) << ' ' << size << ' ' << i;
      }
    }
}

// One rank's numbers are coded once by it and once by the owner; those of the owner itself only with the sum.
TEST(CodedReduceOf, TwoRanksRoundsTwice) {
  constexpr int64_t kN = 2 * Codec::kChunk;  // a chunk for each
  const Codec codec{Codec::kInt8};
  const auto coded = [&](const Tensor& x) {
    const Tensor codes({codec.bytes(x.size())}, kU8), e = Tensor::zeros(x.shape()), y(x.shape());
    encode(codec, codes, x, e, y);
    return y;
  };
  Tensor want({kN});
  for (int owner = 0; owner < 2; ++owner) {
    const auto part = [&](int rank) { return numbers(rank, 0, kN).view({kN / 2}, owner * kN / 2).clone(); };
    const Tensor sum = owner == 0 ? part(0) : coded(part(0));
    axpy(sum, 1.f, owner == 0 ? coded(part(1)) : part(1));
    copy(want.view({kN / 2}, owner * kN / 2), coded(sum));
  }
  in_local_world(2, [&](Communicator& c) {
    const Tensor x = numbers(c.rank(), 0, kN);
    sum(c, x, {codec, Tensor::zeros({kN})});
    EXPECT_EQ(listed(x), listed(want));
  });
}

TEST(CodedReduceOf, LargeVectorsTravelInSegmentsAndWindowsMayBeUnderWayTogether) {
  constexpr int64_t kN = (int64_t(1) << 20) + 77777;  // two segments for each of three ranks
  std::vector<std::vector<float>> whole(3), parts(3);
  for (const bool together : {false, true})
    in_local_world(3, [&](Communicator& c) {
      const Coding coding{{Codec::kInt4}, Tensor::zeros({kN})};
      const Tensor x = numbers(c.rank(), 0, kN);
      if (together) {
        Pendings sums;
        constexpr int64_t kHalf = 128 * Codec::kChunk;
        for (const auto& [at, n] : {std::pair<int64_t, int64_t>(kHalf, kN - kHalf), {0, kHalf}})
          sums += c.mean(x.view({n}, at), {coding.codec, coding.residual.view({n}, at)});
        sums.wait();
      } else {
        c.mean(x, coding).wait();
      }
      (together ? parts : whole)[size_t(c.rank())] = listed(x);
    });
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(whole[r], whole[0]);
    EXPECT_EQ(parts[r], parts[0]);
  }
  EXPECT_LT(differences::largest_difference(whole[0], parts[0]), 1.5)
      << "two roundings of numbers below 6 to steps of a seventh of the largest";
}

// The same bits where messages are late, lost, doubled and out of order.
TEST(CodedReduceOf, AnyNetworkGivesTheSameBits) {
  const sim::Weather storm{
      .seed = 5, .latency = 1e-3, .jitter = 0.02, .loss = 0.2, .duplication = 0.2, .overtaking = true};
  std::vector<std::vector<float>> calm(4), stormy(4);
  const auto reduce = [](Communicator& c, std::vector<std::vector<float>>& to) {
    const Coding coding{{Codec::kTopK, 0.1}, Tensor::zeros({70000})};
    const Tensor x = numbers(c.rank(), 0, 70000);
    for (int k = 0; k < 3; ++k) c.mean(x, coding).wait();
    to[size_t(c.rank())] = listed(x);
  };
  in_local_world(4, [&](Communicator& c) { reduce(c, calm); });
  sim::in_sim_world(4, storm, [&](Communicator& c) { reduce(c, stormy); });
  EXPECT_EQ(stormy, calm);
}

// What each rank sends is (n - 1) / n of the codes, twice.
TEST(CodedReduceOf, SendsFewerBytes) {
  constexpr int64_t kN = 64 * Codec::kChunk;
  for (const auto& [codec, times] : {std::pair(Codec{Codec::kInt8}, 3.9), {Codec{Codec::kInt4}, 7.0}})
    in_local_world(4, [&, codec = codec, times = times](Communicator& c) {
      const Tensor x = numbers(c.rank(), 0, kN);
      sum(c, x, {codec, Tensor::zeros({kN})});
      const double plain = 2 * 3 / 4.0 * 4 * kN;
      EXPECT_GT(plain / double(c.meter().traffic().bytes), times);
    });
}

TEST(CodedReduceOf, WithoutACodecItIsThePlainMean) {
  in_local_world(3, [](Communicator& c) {
    const Tensor x = numbers(c.rank(), 0, 1000), y = x.clone();
    c.mean(x).wait();
    c.mean(y, Coding{}).wait();
    EXPECT_EQ(listed(x), listed(y));
  });
}

}  // namespace
}  // namespace skein::comm
