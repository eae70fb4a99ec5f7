// The halves of batch norm by themselves: for who takes the sums, or applies the map, elsewhere.
#pragma once
#include "engine/backend.h"

namespace skein::cuda {

// Throws Error where shapes and types do not belong together.
void check_norm(const BatchNormArgs&);

// A norm as x scale + bias, [C] each, of the image's type.
struct ChannelMap {
  Tensor scale, bias;
};
// mean, rstd and, if there are any, running statistics <- what a training forward makes of x, or of its sums
// if they are given. And the map, if it has tensors: at most 65504 either way, the bias made for the rounded
// scale. Reads gamma and shift for the map alone, and of the others x.
void statistics(const BatchNormArgs&, const ChannelMap& = {});
// y (and mask) <- the second half of forward, from statistics that are known.
void normalize(const BatchNormArgs&);

// The second half of backward: dx from dy that is masked already (dx may be dy), by its sums, [C] f32 each:
// `dshift` of dy, `dgamma` of dy (x - mean) rstd. They are given on to the arguments' own dgamma and dshift.
void finish_gradient(const BatchNormArgs&, const Tensor& dgamma, const Tensor& dshift);

}  // namespace skein::cuda
