// A convolution, with what is fused onto it, as a graph of cuDNN's operations.
#pragma once
#include <compare>
#include <ostream>

#include "engine/cuda/cudnn_library.h"
#include "engine/dtype.h"

namespace skein::cuda {

enum class ConvPass { kForward, kData, kWeights };

// What a pass computes besides the convolution, as a sum of flags.
enum Fused : unsigned {
  // Forward, after it, in this order:
  kBias = 1,      // y + bias [o] f32
  kResidual = 2,  // y + an image like y
  kRelu = 4,      // max(0, y)
  kSums = 8,      // also the sum and the sum of squares of y for each channel [o] f32
  // Forward and weights, before it: x is max(0, x scale + bias), [c] each, of x's type.
  kNormalize = 16,
  // Data, after it: the gradient goes on through the ReLU and, in part, the batch norm that x came from. The
  // result is dy where max(0, (raw - mean) rstd gamma + shift) is positive, else 0. Further results, [c] f32,
  // are its sum (dshift), the sum of dy (raw - mean) rstd (dgamma), and the coefficients with which dy and
  // raw make the gradient of `raw`.
  kNormGradient = 32,
};

// Everything a plan depends on; also the key of the cache.
// Large class: it is compared as a whole, and a convolution has so many dimensions.
struct ConvProblem {
  ConvPass pass;
  DType images, weights;        // the types of x and y, and of w
  int64_t n, h, w, c, o, r, s;  // x [n,h,w,c], weights [o,r,s,c/groups]
  int stride, padding, dilation, groups;
  bool accumulate;  // result <- result + ..., else it is overwritten
  bool tf32, deterministic;
  int64_t alignment;   // of all pointers, in bytes, at most 16
  unsigned fused = 0;  // flags of Fused
  auto operator<=>(const ConvProblem&) const = default;
  int64_t p() const { return (h + 2 * padding - dilation * (r - 1) - 1) / stride + 1; }
  int64_t q() const { return (w + 2 * padding - dilation * (s - 1) - 1) / stride + 1; }
  double operations() const { return 2. * double(n * p() * q() * o) * double(c / groups * r * s); }
  double image_bytes() const { return double(n * h * w * c * size_of(images)); }
  double result_bytes() const { return double(n * p() * q() * o * size_of(images)); }
  double bytes() const {  // the least that the pass alone moves
    return image_bytes() + double(o * r * s * c / groups * size_of(weights)) + result_bytes();
  }
};
std::ostream& operator<<(std::ostream&, const ConvProblem&);

// The ids of the tensors in an execution. Every problem has the first three; its flags add others.
enum TensorId : int64_t {
  kImageId = 1,
  kWeightsId,
  kResultId,
  kBiasId,
  kResidualId,
  kSumId,
  kSquaresId,
  kMapScaleId,  // kNormalize
  kMapBiasId,
  kRawId,  // kNormGradient: read
  kMeanId,
  kRstdId,
  kGammaId,
  kShiftId,
  kGammaGradientId,  // and written
  kShiftGradientId,
  kLineOfGradientId,
  kLineOfRawId,
  kLineConstantId,
  kFirstInsideId = 100,  // tensors that are never stored
};

// The finalized graph. Throws Error with cuDNN's message if it cannot be finalized.
Descriptor graph_of(const ConvProblem&);

}  // namespace skein::cuda
