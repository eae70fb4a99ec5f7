// What batch_norm and conv_bn share: the arguments of the primitive, the gradient, and the differentiable
// evaluation form.
#pragma once
#include "engine/ops.h"
#include "engine/tape.h"

namespace skein {

// Normalizes x into a new y as `mode` says; the result holds all that the gradient reads. Throws Error showing
// the shapes where they disagree.
BatchNormArgs norm_forward(const Tensor& x, const NormState&, const NormMode&);

// Pulls the gradients of gamma, shift and residual of norm_forward in training, and writes that of x to dx. May
// overwrite dy, and gives it on.
void pull_norm(Pull&, BatchNormArgs, const Tensor& dy, const Tensor& dx, float dx_beta);

// The same by recorded pointwise ops on the running statistics: for a tape in evaluation mode.
Tensor norm_by_running(const Tensor& x, const NormState&, const NormMode&);

// Is a tape alive that wants one of these?
bool on_tape(std::initializer_list<Tensor>);

}  // namespace skein
