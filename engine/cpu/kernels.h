// The CPU's own kernels: written once for vectors of any width, compiled for each kind of instruction sets, and chosen
// once, when the program first needs one. Their arguments are plain addresses; who calls them divides the work among
// threads and has checked shapes and types.
#pragma once
#include "engine/cpu/pool_plane.h"
#include "engine/dtype.h"

namespace skein::cpu {

// Which element type a kernel was compiled for: the index into its row of the table.
inline size_t element(DType t) { return t == kF32 ? 0 : t == kBF16 ? 1 : 2; }

// How a norm's backward knows where the ReLU was at work: it was not there; from y; or from x, which is read anyway,
// if nothing was added.
enum class Mask { kNone, kOutput, kInput };

// Images seen as rows of `width` elements, a whole number of pixels and of vectors. A pass takes the rows [first, last),
// and of each the first `length` elements: all of them, unless it is a single row.
struct NormRows {
  int64_t first, last, width, length;
};
// What a pass reads and writes; what it does not use is null. Constants are of one row.
struct NormPass {
  const void *x = nullptr, *residual = nullptr, *y = nullptr, *dy = nullptr;
  void *out = nullptr, *dr = nullptr;                       // y or dx; the masked dy
  const float *mean = nullptr, *k = nullptr, *b = nullptr;  // y = (x - mean) k + b
  const float *p = nullptr, *q = nullptr, *r = nullptr;     // dx = p dy + q (x - mean) + r
  float low = 0, out_beta = 0, dr_beta = 0;                 // y is at least `low`
};
struct NormKernels {
  // sums[j] += x - mean, sums[width + j] += (x - mean)^2
  void (*statistics)(const NormPass&, const NormRows&, float* sums);
  void (*apply)(const NormPass&, const NormRows&);  // out = max(low, y + residual)
  // By Mask: sums[j] += dy, sums[width + j] += dy (x - mean), dy masked; and dr = dy masked.
  void (*gradient_sums[3])(const NormPass&, const NormRows&, float* sums);
  // By Mask: out = dx + out_beta out, dr = dy masked + dr_beta dr.
  void (*gradient[3])(const NormPass&, const NormRows&);
};

// Each computes one row of its result.
struct PoolKernels {
  void (*maximum)(const PoolPlane&, int64_t row);
  void (*average)(const PoolPlane&, int64_t row);
  void (*maximum_gradient)(const PoolPlane&, int64_t row);
  void (*average_gradient)(const PoolPlane&, int64_t row);
};

struct Kernels {
  int width;            // floats in a vector
  NormKernels norm[3];  // by element()
  PoolKernels pool[3];
};
const Kernels& kernels();  // those of chosen_isa()

}  // namespace skein::cpu
