// Batch normalization with optional residual add and ReLU, around the backend's fused primitive.
#include "engine/ops/batch_norm.h"

#include "engine/ops/norm_check.h"

namespace skein {

void check_norm(const BatchNormArgs& a) {
  CHECK(a.x && a.x.rank() >= 2 && a.x.size() > 0, a.x.shape());
  const int64_t channels = a.x.dim(-1);
  for (const Tensor* t : {&a.y, &a.residual, &a.dy, &a.dx, &a.dresidual})
    CHECK(!*t || (t->shape() == a.x.shape() && t->dtype() == a.x.dtype()), t->shape(), a.x.shape());
  for (const Tensor* t : {&a.gamma, &a.shift, &a.running_mean, &a.running_var, &a.mean, &a.rstd, &a.dgamma,
                          &a.dshift, &a.sums.sum, &a.sums.squares})
    CHECK(!*t || (t->size() == channels && t->dtype() == kF32), t->shape(), channels);
  CHECK(!a.mask || (a.mask.size() * 8 == a.x.size() && a.mask.dtype() == kU8), a.mask.shape(), a.x.shape());
  CHECK(!a.training || (a.mean && a.rstd), "training keeps mean and rstd");
  CHECK(a.training || (a.running_mean && a.running_var), "evaluation needs the running statistics");
}

void check_norm(const Shape& channels, const NormState& s) {
  for (const Tensor* t : {&s.gamma, &s.shift, &s.running_mean, &s.running_var})
    CHECK(t->shape() == channels, "batch norm of", channels[0], "channels with a parameter or statistic of",
          t->shape());
}

namespace {

// If a residual was added, the ReLU's mask cannot be recomputed from x; stored as bits it takes a
// sixteenth of y's bytes.
Tensor mask_for(const BatchNormArgs& a) {
  const bool eights = size_of(a.x.dtype()) == 2 && a.x.dim(-1) % 8 == 0;
  if (!a.x.device().is_cuda() || !Tape::current() || !a.relu || !a.residual || !eights) return {};
  for (const Tensor* t :
       {&a.x, &a.y, &a.residual, &a.gamma, &a.shift, &a.mean, &a.rstd, &a.running_mean, &a.running_var})
    if (*t && reinterpret_cast<uintptr_t>(t->address()) % 16 != 0) return {};
  return Tensor({a.x.size() / 8}, kU8, a.x.device());
}

}  // namespace

BatchNormArgs norm_arguments(const Tensor& x, const NormState& s, const NormMode& mode,
                             const ChannelSums& sums) {
  const Shape channels{x.dim(-1)};
  check_norm(channels, s);
  CHECK(!mode.residual || (mode.residual.shape() == x.shape() && mode.residual.dtype() == x.dtype()),
        "residual", mode.residual.shape(), mode.residual.dtype(), "to be added to", x.shape(), x.dtype());
  CHECK(!mode.training || x.size() > x.dim(-1),
        "batch norm needs more than one value a channel to train, not", x.shape());
  BatchNormArgs a;
  a.x = x;
  a.residual = mode.residual;
  a.gamma = s.gamma;
  a.shift = s.shift;
  a.running_mean = s.running_mean;
  a.running_var = s.running_var;
  a.training = mode.training;
  a.relu = mode.relu;
  a.momentum = s.momentum;
  a.epsilon = s.epsilon;
  if (mode.training) {
    a.mean = Tensor(channels, kF32, x.device());
    a.rstd = Tensor(channels, kF32, x.device());
    a.sums = sums;
  }
  return a;
}

BatchNormArgs norm_forward(const Tensor& x, const NormState& s, const NormMode& mode,
                           const ChannelSums& sums) {
  BatchNormArgs a = norm_arguments(x, s, mode, sums);
  a.y = Tensor(x.shape(), x.dtype(), x.device());
  a.mask = mask_for(a);
  batch_norm_forward(x.device(), a);
  a.sums = {};  // the gradient reads mean and rstd
  return a;
}

KeptNorm kept_of(const BatchNormArgs& forward) {
  KeptNorm n{forward, {}};
  BatchNormArgs& a = n.args;
  if (a.residual) n.residual = a.residual;
  if (!a.relu || a.mask) a.residual = {};  // there is no mask to compute, or it is stored
  if (!a.residual) a.y = {};
  return n;
}

void pull_norm(Pull& pull, const KeptNorm& n, const Tensor& dy, const Tensor& dx, float dx_beta) {
  BatchNormArgs a = n.args;
  a.dy = dy;
  a.dx = dx;
  a.dx_beta = dx_beta;
  const auto take = [&](const Tensor& leaf, Tensor& grad, float& beta) {
    pull(leaf, [&](const Tensor& d, float b) { grad = d, beta = b; });
    if (!grad) grad = Tensor(leaf.shape(), kF32, leaf.device());  // the primitive computes it anyway
  };
  take(a.gamma, a.dgamma, a.dgamma_beta);
  take(a.shift, a.dshift, a.dshift_beta);
  const bool residual = n.residual && pull.wants(*n.residual);
  if (residual && a.relu) a.dresidual = dy;  // masked in place; without ReLU it is dy as it stands
  batch_norm_backward(dy.device(), a);
  if (residual) pull.give(*n.residual, dy);
}

Settings settings_of(const NormState& s, const NormMode& mode) {
  return {
      {"epsilon", {double(s.epsilon)}}, {"relu", {double(mode.relu)}}, {"training", {double(mode.training)}}};
}

Tensor batch_norm(const Tensor& x, const NormState& s, const NormMode& mode) {
  return batch_norm(x, s, mode, {});
}

Tensor batch_norm(const Tensor& x, const NormState& s, const NormMode& mode, const ChannelSums& sums) {
  const BatchNormArgs a = norm_forward(x, s, mode, sums);
  const Operation op{.op = "batch_norm",
                     .in = {x, s.gamma, s.shift, s.running_mean, s.running_var, mode.residual},
                     .out = a.y,
                     .settings = [&] { return settings_of(s, mode); }};
  return record(op, [n = kept_of(a)](const Tensor& dy, Pull& pull) {
    Tensor dx;
    float beta = 0;
    pull(n.args.x, [&](const Tensor& d, float b) { dx = d, beta = b; });
    if (!dx) dx = Tensor(dy.shape(), dy.dtype(), dy.device());
    pull_norm(pull, n, dy, dx, beta);
  });
}

}  // namespace skein
