// A convolution, with what is fused onto it, as a graph of cuDNN's operations.
#pragma once
#include <compare>
#include <ostream>

#include "engine/cuda/cudnn_library.h"
#include "engine/dtype.h"

namespace skein::cuda {

enum class ConvPass { kForward, kData, kWeights };

// What a forward pass computes beside the convolution, in this order, as a sum of flags.
enum Fused : unsigned {
  kBias = 1,      // y + bias [o] f32
  kResidual = 2,  // y + an image like y
  kRelu = 4,      // max(0, y)
  kSums = 8,      // also the sum and the sum of squares of y for each channel [o] f32
};

// Everything a plan depends on; also the key of the cache.
struct ConvProblem {
  ConvPass pass;
  DType images, weights;        // the types of x and y, and of w
  int64_t n, h, w, c, o, r, s;  // x [n,h,w,c], weights [o,r,s,c/groups]
  int stride, padding, dilation, groups;
  bool accumulate;  // result <- result + ..., else it is overwritten
  bool tf32, deterministic;
  int64_t alignment;   // of all pointers, in bytes, at most 16
  unsigned fused = 0;  // flags of Fused; forward only
  auto operator<=>(const ConvProblem&) const = default;
  int64_t p() const { return (h + 2 * padding - dilation * (r - 1) - 1) / stride + 1; }
  int64_t q() const { return (w + 2 * padding - dilation * (s - 1) - 1) / stride + 1; }
  double operations() const { return 2. * double(n * p() * q() * o) * double(c / groups * r * s); }
  double result_bytes() const { return double(n * p() * q() * o * size_of(images)); }
  double bytes() const {  // that the pass alone moves at least
    return double(n * h * w * c * size_of(images) + o * r * s * c / groups * size_of(weights)) +
           result_bytes();
  }
};
std::ostream& operator<<(std::ostream&, const ConvProblem&);

// The names of the tensors in an execution. A problem has the first three, and of the others those of its
// flags.
inline constexpr int64_t kImageId = 1, kWeightsId = 2, kResultId = 3, kBiasId = 4, kResidualId = 5,
                         kSumId = 6, kSquaresId = 7;

// The finalized graph. Throws Error with cuDNN's words where it cannot be one.
Descriptor graph_of(const ConvProblem&);

}  // namespace skein::cuda
