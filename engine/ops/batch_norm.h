// What batch_norm and conv_bn share: the arguments of the primitive, and the gradient.
#pragma once
#include <optional>

#include "engine/ops.h"
#include "engine/tape.h"

namespace skein {

// Throws Error unless all parameters and statistics are [C].
void check_norm(const Shape& channels, const NormState&);

// The arguments to normalize x as `mode` says, all but y. The sums of x may be given. Throws Error showing
// the shapes if they disagree.
BatchNormArgs norm_arguments(const Tensor& x, const NormState&, const NormMode&, const ChannelSums&);
// Normalizes x into a new y.
BatchNormArgs norm_forward(const Tensor& x, const NormState&, const NormMode&, const ChannelSums& = {});

// What the gradient needs of a norm, without keeping more memory alive.
struct KeptNorm {
  BatchNormArgs args;
  std::optional<Value> residual;
};
KeptNorm kept_of(const BatchNormArgs& forward);

// Pulls the gradients of gamma, shift and residual, and writes that of x to dx. It may overwrite dy
// and gives it away.
void pull_norm(Pull&, const KeptNorm&, const Tensor& dy, const Tensor& dx, float dx_beta);

// The op, for an x whose sums may be known.
Tensor batch_norm(const Tensor& x, const NormState&, const NormMode&, const ChannelSums&);

// The settings that an outline lists: epsilon, relu, training.
Settings settings_of(const NormState&, const NormMode&);

}  // namespace skein
