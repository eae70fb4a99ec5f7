// cuDNN's execution plans for one convolution: asked for by shape, found by its heuristics.
#pragma once
#include <compare>
#include <string>
#include <vector>

#include "engine/backend.h"
#include "engine/cuda/cudnn_library.h"

namespace skein::cuda {

enum class ConvPass { kForward, kData, kWeights };

// Everything a plan depends on; also the key of the cache.
struct ConvProblem {
  ConvPass pass;
  DType images, weights;        // the types of x and y, and of w
  int64_t n, h, w, c, o, r, s;  // x [n,h,w,c], weights [o,r,s,c/groups]
  int stride, padding, dilation, groups;
  bool accumulate;  // result <- result + ..., else it is overwritten
  bool tf32, deterministic;
  int64_t alignment;  // of all three pointers, in bytes, at most 16
  auto operator<=>(const ConvProblem&) const = default;
  int64_t p() const { return (h + 2 * padding - dilation * (r - 1) - 1) / stride + 1; }
  int64_t q() const { return (w + 2 * padding - dilation * (s - 1) - 1) / stride + 1; }
};
std::ostream& operator<<(std::ostream&, const ConvProblem&);

// The names of the three tensors in an execution.
inline constexpr int64_t kImageId = 1, kWeightsId = 2, kResultId = 3;

struct ConvPlan {
  Descriptor plan;
  int64_t workspace = 0;  // bytes
  std::string name;       // cuDNN's, with its notes: for logs and tables
};

// Up to `at_most` plans, best first by cuDNN's heuristics; none if it has none that satisfies tf32 and
// deterministic. Building one may compile a kernel (up to a second).
std::vector<ConvPlan> conv_plans(const Descriptor& device, const ConvProblem&, size_t at_most = 1);

}  // namespace skein::cuda
