// The order of samples and how batches are shared among ranks.
#include "data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>
#include "tests/data/spans.h"

namespace skein::data {
namespace {

std::vector<int64_t> order(uint64_t seed, int64_t size, int64_t epoch) {
  std::vector<int64_t> o;
  for (int64_t p = 0; p < size; ++p) o.push_back(sample_index(seed, size, epoch, p));
  return o;
}

TEST(Sampler, IsAPermutationForEverySizeAndEpoch) {
  std::vector<int64_t> sizes{255, 256, 257, 1000, 1023, 1024, 1025, 4096, 4097, 50000};
  for (int64_t s = 1; s <= 130; ++s) sizes.push_back(s);
  for (const int64_t size : sizes)
    for (const int64_t epoch : {0, 1, 7}) {
      std::vector<int64_t> o = order(3, size, epoch), all(size_t(size), 0);
      std::iota(all.begin(), all.end(), 0);
      std::sort(o.begin(), o.end());
      ASSERT_EQ(o, all) << size << " " << epoch;
    }
}

TEST(Sampler, StaysInRangeForHugeSets) {
  const int64_t size = (int64_t(1) << 41) + 12345;
  std::set<int64_t> seen;
  for (int64_t p = 0; p < 2000; ++p) {
    const int64_t i = sample_index(1, size, 0, size - 1 - p);
    ASSERT_TRUE(i >= 0 && i < size);
    seen.insert(i);
  }
  EXPECT_EQ(seen.size(), 2000u);
}

TEST(Sampler, OrdersDifferBetweenEpochsAndSeeds) {
  EXPECT_NE(order(1, 100, 0), order(1, 100, 1));
  EXPECT_NE(order(1, 100, 0), order(2, 100, 0));
  EXPECT_EQ(order(1, 100, 4), order(1, 100, 4));
}

// Which of 20 parts of the set a position falls into, over many epochs: chi-square with 19 degrees of
// freedom exceeds 60 with a probability of 4e-6. The same holds for the distance of neighbors, which
// a poor permutation keeps.
TEST(Sampler, PositionsAndNeighborsAreUniform) {
  constexpr int kParts = 20, kEpochs = 4000;
  constexpr int64_t kSize = 1000;
  for (const int64_t position : {int64_t(0), int64_t(1), kSize / 2, kSize - 1}) {
    std::vector<double> place(kParts), step(kParts);
    for (int64_t e = 0; e < kEpochs; ++e) {
      const int64_t i = sample_index(9, kSize, e, position),
                    next = sample_index(9, kSize, e, (position + 1) % kSize);
      ++place[size_t(i * kParts / kSize)];
      ++step[size_t((next - i + kSize) % kSize * kParts / kSize)];
    }
    for (const auto& counts : {place, step}) {
      double chi2 = 0;
      for (const double n : counts)
        chi2 += (n - kEpochs / kParts) * (n - kEpochs / kParts) / (kEpochs / kParts);
      EXPECT_LT(chi2, 60) << position;
    }
  }
}

TEST(Sampler, StepsRoundUpAndABatchLargerThanTheSetIsRefused) {
  EXPECT_EQ(steps_per_epoch(100, 10), 10);
  EXPECT_EQ(steps_per_epoch(101, 10), 11);
  EXPECT_EQ(steps_per_epoch(10, 10), 1);
  try {
    steps_per_epoch(10, 11);
    FAIL();
  } catch (const BadOption& e) {
    EXPECT_NE(std::string(e.what()).find("--batch-size"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("11"), std::string::npos);
  }
}

TEST(Sampler, SpansPartitionEveryStepAsEvenlyAsTheyGo) {
  for (const auto& [size, batch] :
       {std::pair<int64_t, int64_t>{103, 16}, {16, 16}, {9, 8}, {1000, 7}, {5, 1}})
    for (const int world : {1, 2, 3, 4, 8, 11}) {
      int64_t at = 0;
      for (int64_t s = 0; s < steps_per_epoch(size, batch); ++s) {
        const int64_t n = std::min(batch, size - s * batch);
        for (int r = 0; r < world; ++r) {
          const Span span = span_of(size, batch, s, r, world);
          ASSERT_EQ(span.begin, at);
          ASSERT_EQ(span.size(), n / world + (r < n % world ? 1 : 0));
          at = span.end;
        }
      }
      ASSERT_EQ(at, size);
    }
}

TEST(Sampler, AStepHoldsTheSameSamplesForEveryWorld) {
  constexpr int64_t kSize = 77, kBatch = 24;
  for (int64_t s = 0; s < steps_per_epoch(kSize, kBatch); ++s) {
    std::vector<int64_t> alone;
    for (const int world : {1, 2, 3, 4, 8}) {
      std::vector<int64_t> together;
      for (int r = 0; r < world; ++r) {
        const Span span = span_of(kSize, kBatch, s, r, world);
        for (int64_t p = span.begin; p < span.end; ++p) together.push_back(sample_index(5, kSize, 2, p));
      }
      if (world == 1) alone = together;
      EXPECT_EQ(together, alone) << world;
    }
  }
}

}  // namespace
}  // namespace skein::data
