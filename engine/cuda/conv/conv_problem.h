// From the arguments of a primitive to a problem of cuDNN's and its operands.
#pragma once
#include "engine/backend.h"
#include "engine/cuda/conv/conv_run.h"

namespace skein::cuda {

// `w` stands for c.w, of the type that the pass is computed with. Throws Error where shapes disagree.
ConvProblem problem_of(ConvPass, const ConvArgs& c, const Tensor& w);
inline Operands operands(const Tensor& x, const Tensor& w, const Tensor& y) {
  return {{kImageId, x}, {kWeightsId, w}, {kResultId, y}};
}
// Says what is fused and adds the tensors that belong to it.
void fuse(ConvProblem&, Operands&, unsigned what, const Operands& more);

// Where weights' gradients can be written as they are computed: not in another type, not with a factor.
bool direct(const Tensor& result, DType computed, float beta);

}  // namespace skein::cuda
