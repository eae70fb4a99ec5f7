// The small kernels around library calls.
#pragma once
#include "engine/tensor.h"

namespace skein::cuda {

// y <- x + beta y, between floating types; with beta 0, y is not read.
void blend(const Tensor& y, const Tensor& x, float beta);
// y <- y + bias (f32, along the last axis) + residual (like y); either may be empty. Then, with relu, y <-
// max(0, y). A NaN stays a NaN. One pass, or none if there is nothing to do.
void finish(const Tensor& y, const Tensor& bias, const Tensor& residual, bool relu);
// x itself if it is of this type, else a copy: the one kept with x (engine/vectors/narrow.h) or a new one.
Tensor as_type(const Tensor& x, DType);

}  // namespace skein::cuda
