// What batch_norm and conv_bn share: the arguments of the primitive, and the gradient.
#pragma once
#include "engine/ops.h"
#include "engine/outline.h"
#include "engine/tape.h"

namespace skein {

// Throws Error unless all parameters and statistics are [C].
void check_norm(const Shape& channels, const NormState&);

// What the primitive needs to normalize x, whose sums may be known, as `mode` says, but for y. Throws Error
// showing the shapes where they disagree.
BatchNormArgs norm_arguments(const Tensor& x, const NormState&, const NormMode&, const ChannelSums&);
// Normalizes x into a new y; the result holds all that the gradient reads.
BatchNormArgs norm_forward(const Tensor& x, const NormState&, const NormMode&, const ChannelSums& = {});

// Pulls the gradients of gamma, shift and residual, and writes that of x to dx. May overwrite dy, and gives
// it on.
void pull_norm(Pull&, BatchNormArgs, const Tensor& dy, const Tensor& dx, float dx_beta);

// The op, of an x whose sums may be known.
Tensor batch_norm(const Tensor& x, const NormState&, const NormMode&, const ChannelSums&);

// As an outline lists it: epsilon, relu, training.
std::map<std::string, std::vector<double>> settings_of(const NormState&, const NormMode&);

}  // namespace skein
