// The positions that a rank takes at a step of an epoch, said by themselves.
#pragma once
#include <algorithm>

#include "data/sampler.h"

namespace skein::data {

// Of rank r of `world`. The global batch of a step is the same for every world.
inline Span span_of(int64_t size, int64_t global_batch, int64_t step_in_epoch, int rank, int world) {
  const int64_t first = step_in_epoch * global_batch;
  return part_of({first, std::min(first + global_batch, size)}, rank, world);
}

}  // namespace skein::data
