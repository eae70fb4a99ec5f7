// Convolutions whose input image need not be stored: the output of a training batch norm and its ReLU,
// computed from the norm's own input (the raw image) in the main loop of the convolution. Only CUDA can do
// this; engine/ops/conv_bn_chain.cc decides when it is used.
#pragma once
#include "engine/backend.h"

namespace skein {

// Stands for y = max(0, (x - mean) rstd gamma + shift).
struct RawImage {
  BatchNormArgs norm;  // x, parameters, statistics, and y if it was computed after all
  Tensor scale, bias;  // [C] of x's type: y is max(0, x scale + bias), except for rounding
};

// The calls of the seam (engine/seam.def). Each convolution is one fused kernel if that is faster
// (docs/gpu_fusions.md), else the separate passes. c.x is y, so callers of forward and
// backward_weights leave it empty.
//   raw_image    from norm.x, gamma, shift and, if given, sums and running statistics, which it updates
//   raw_conv2d_
//     forward           c.y <- conv(y, c.w); returns the sums of c.y if they came with it; makes and keeps y
//                       if it was not fused
//     backward_weights  c.w <- its gradient + beta c.w, by c.y, the gradient of the convolution's result
//     backward_data     c.x <- the gradient of norm.x, through ReLU and norm; norm.dgamma and dshift, too,
//                       with their betas

}  // namespace skein
