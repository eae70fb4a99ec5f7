// Converts the arguments of a primitive to a problem for cuDNN and its operands.
#pragma once
#include "engine/backend.h"
#include "engine/cuda/conv/conv_run.h"

namespace skein::cuda {

// `w` replaces c.w, in the type that the pass is computed with. Throws Error if shapes disagree.
ConvProblem problem_of(ConvPass, const ConvArgs& c, const Tensor& w);
inline Operands operands(const Tensor& x, const Tensor& w, const Tensor& y) {
  return {{kImageId, x}, {kWeightsId, w}, {kResultId, y}};
}
// Says what is fused and adds the tensors that belong to it.
void fuse(ConvProblem&, Operands&, unsigned what, const Operands& more);

// Whether a weight gradient can be written as it is computed: with the same type and no factor.
bool direct(const Tensor& result, DType computed, float beta);

}  // namespace skein::cuda
