// The halves of batch norm on their own, for code that takes the sums or applies the map elsewhere.
#pragma once
#include "engine/backend.h"

namespace skein::cuda {

// A norm as x scale + bias, [C] each, of the image's type.
struct ChannelMap {
  Tensor scale, bias;
};
// mean, rstd and, if given, the running statistics <- as a training forward computes them from x, or from its
// sums if given. Also computes the map, if it has tensors: within +-65504, with the bias made for the rounded
// scale. gamma and shift are read only for the map.
void statistics(const BatchNormArgs&, const ChannelMap& = {});
// y (and mask) <- the second half of forward, from statistics that are known.
void normalize(const BatchNormArgs&);

// The second half of backward: dx from dy that is masked already (dx may be dy), by its sums, [C] f32 each:
// `dshift` of dy, `dgamma` of dy (x - mean) rstd. They are also written to the arguments' own dgamma and
// dshift, with their betas.
void finish_gradient(const BatchNormArgs&, const Tensor& dgamma, const Tensor& dshift);

}  // namespace skein::cuda
