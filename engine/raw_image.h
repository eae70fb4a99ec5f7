// Convolutions of an image that need not be stored: the ReLU of a training batch norm, made from the raw image
// in the main loop of the convolution that takes it in. A part of the seam (backend.h) that CUDA alone has;
// engine/ops/conv_bn_chain.cc says when it is used.
#pragma once
#include "engine/backend.h"

namespace skein {

// Stands for y = max(0, (x - mean) rstd gamma + shift).
struct RawImage {
  BatchNormArgs norm;  // x; the parameters and statistics; y, where it was made after all
  Tensor scale, bias;  // [C] of x's type: y is max(0, x scale + bias), but for rounding
};

namespace cuda {
RawImage raw_image(const BatchNormArgs&);
ChannelSums raw_conv2d_forward(RawImage&, const ConvArgs&);
void raw_conv2d_backward_weights(const RawImage&, const ConvArgs&);
void raw_conv2d_backward_data(const RawImage&, const ConvArgs&);
}  // namespace cuda

[[noreturn]] inline void no_raw_images() { throw Error("raw images are for CUDA devices"); }

// Of norm.x, gamma, shift and, if there are any, sums and running statistics, which it updates.
inline RawImage raw_image(const BatchNormArgs& norm) {
  if constexpr (kHasCuda) return cuda::raw_image(norm);
  no_raw_images();
}

// In the others c.x is y in forward and for the weights, so it is not given. Each is one fused kernel where that
// is the faster way (docs/gpu_fusions.md), else the passes that it stands for.

// c.y <- conv(y, c.w); and the sums of c.y, where they came with it. Where it was not fused, y is made and kept.
inline ChannelSums raw_conv2d_forward(RawImage& image, const ConvArgs& c) {
  if constexpr (kHasCuda) return cuda::raw_conv2d_forward(image, c);
  no_raw_images();
}
// c.w <- its gradient + beta c.w, by c.y, the gradient of the convolution's result.
inline void raw_conv2d_backward_weights(const RawImage& image, const ConvArgs& c) {
  if constexpr (kHasCuda) return cuda::raw_conv2d_backward_weights(image, c);
  no_raw_images();
}
// c.x <- the gradient of norm.x, through ReLU and norm; norm.dgamma and dshift likewise, with their betas.
inline void raw_conv2d_backward_data(const RawImage& image, const ConvArgs& c) {
  if constexpr (kHasCuda) return cuda::raw_conv2d_backward_data(image, c);
  no_raw_images();
}

}  // namespace skein
