// The small kernels that stand around library calls.
#pragma once
#include "engine/tensor.h"

namespace skein::cuda {

// y <- x + beta y, between floating types; with beta 0, y is not read.
void blend(const Tensor& y, const Tensor& x, float beta);
// y <- y + bias along the last axis (f32) + residual (like y), of which each may be empty; then, with relu,
// max(0, .). A NaN stays. One pass, none where there is nothing to do.
void finish(const Tensor& y, const Tensor& bias, const Tensor& residual, bool relu);
// x itself if it is of that type, else a copy that is: the one kept beside it (engine/vectors/narrow.h)
// or a new one.
Tensor as_type(const Tensor& x, DType);

}  // namespace skein::cuda
