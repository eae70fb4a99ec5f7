// Which samples belong to which step and rank: pure functions, so resuming needs no state.
#pragma once
#include <vector>

#include "engine/base.h"

namespace skein::data {

// The sample at `position` of epoch `epoch`: a pseudo-random permutation of [0, size), O(1), no tables.
// A four-round Feistel network keyed by Philox(seed, kOrder, epoch), walked until it lands below size.
int64_t sample_index(uint64_t seed, int64_t size, int64_t epoch, int64_t position);

// The steps of an epoch when each takes `global_batch` samples of `size`; the last may be smaller.
// A batch larger than the data set is an error.
int64_t steps_per_epoch(int64_t size, int64_t global_batch);

// Positions [begin, end) within an epoch; there may be none.
struct Span {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Span&) const = default;
};
// The part of rank r when positions are split as evenly as possible, lower ranks first.
Span part_of(Span all, int rank, int world);
// The same in proportion to shares: `before[r]` is the sum of those of the ranks below r, and the last
// element that of all. Positions as many as that sum are split into the shares themselves.
Span part_of(Span all, int rank, const std::vector<int64_t>& before);

}  // namespace skein::data
