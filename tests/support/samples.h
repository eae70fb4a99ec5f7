// Vectors of numbers that floating addition does not like to be reordered with.
#pragma once
#include "engine/tensor.h"

namespace skein::comm {

// Not inlined, because its product could be fused with a following addition and keep bits that
// stored numbers have lost.
[[gnu::noinline]] inline float sample(int rank, int64_t i) {
  return float((uint32_t(rank + 1) * 2654435761u + uint32_t(i) * 40503u) >> 8) * (i & 2 ? 1e-3f : 1e3f);
}
inline Tensor vector_of(int rank, int64_t n, Allocator& from = allocator(kCpu)) {
  Tensor x({n}, kF32, from);
  for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = sample(rank, i);
  return x;
}
inline float sum_of(int ranks, int64_t i) {
  float s = sample(0, i);
  for (int r = 1; r < ranks; ++r) s += sample(r, i);
  return s;
}

}  // namespace skein::comm
