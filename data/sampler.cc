// Computes the order of an epoch by a keyed permutation, and each rank's part of a step's batch.
#include "data/sampler.h"

#include <algorithm>
#include <bit>

#include "engine/random.h"

namespace skein::data {
namespace {

// A permutation of [0, 4^bits): a Feistel network is one for any round function.
uint64_t feistel(uint64_t seed, int64_t epoch, int bits, uint64_t x) {
  const uint64_t mask = (uint64_t(1) << bits) - 1;
  uint64_t left = x >> bits, right = x & mask;
  for (uint32_t round = 0; round < 4; ++round) {
    const Draw draw{seed, Purpose::kOrder, uint64_t(epoch), round};
    const uint64_t mixed = left ^ (draw.block(uint32_t(right)).v[0] & mask);
    left = right, right = mixed;
  }
  return left << bits | right;
}

}  // namespace

int64_t sample_index(uint64_t seed, int64_t size, int64_t epoch, int64_t position) {
  CHECK(position >= 0 && position < size, position, size);
  if (size == 1) return 0;
  const int bits = (std::bit_width(uint64_t(size - 1)) + 1) / 2;
  // The domain is less than four times the size, so four walks are the mean at worst. Walking from a point
  // below size along its cycle ends below size, and two points never end at the same one.
  uint64_t x = uint64_t(position);
  do x = feistel(seed, epoch, bits, x);
  while (x >= uint64_t(size));
  return int64_t(x);
}

int64_t steps_per_epoch(int64_t size, int64_t global_batch) {
  CHECK(global_batch > 0, global_batch);
  if (global_batch > size)
    throw BadOption(text("a batch of ", global_batch,
                         " samples over all workers is larger than the data set of ", size,
                         "; use a smaller --batch-size or fewer workers"));
  return (size + global_batch - 1) / global_batch;
}

Span part_of(Span all, int rank, int world) {
  CHECK(rank >= 0 && rank < world, rank, world);
  const int64_t share = all.size() / world, rest = all.size() % world;
  const int64_t begin = all.begin + rank * share + std::min<int64_t>(rank, rest);
  return {begin, begin + share + (rank < rest ? 1 : 0)};
}

Span part_of(Span all, int rank, const std::vector<int64_t>& before) {
  const auto bound = [&](size_t r) {
    return all.begin + int64_t(static_cast<__int128>(all.size()) * before[r] / before.back());
  };
  return {bound(size_t(rank)), bound(size_t(rank) + 1)};
}

}  // namespace skein::data
