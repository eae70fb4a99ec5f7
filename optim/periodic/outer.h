// Outer: what a round has achieved is the gradient of an optimizer with momentum. DiLoCo: Douillard
// et al., 2023.
#pragma once
#include "engine/vectors/mixing.h"
#include "optim/options.h"
#include "optim/rule.h"

namespace skein::optim {

//   z   what all agreed on last        Delta   z - mean x        m    outer momentum
//   nu, mu   --outer-lr, --outer-momentum      r    the round, from 0
// --outer-warmup R: mu grows from 0 in the first R rounds, whose Delta are large and soon out of date.
class Outer {
 public:
  explicit Outer(const Options& o)
      : nu_(o.number("outer-lr", 0.7, 0)),
        mu_(o.number("outer-momentum", 0.9, 0, 1)),
        nesterov_(o.flag("outer-nesterov", true)),
        warmup_(o.integer("outer-warmup", 0, 0)),
        resets_(o.flag("reset-inner", false)) {}

  // m <- mu m + Delta; z <- z - nu (mu m + Delta), without Nesterov z - nu m; then x <- z, where x is given.
  void step(int64_t r, const Tensor& z, const Tensor& m, const Tensor& mean, const Tensor& x) const {
    outer_step({.z = z,
                .m = m,
                .mean = mean,
                .x = x,
                .decay = mu(r),
                .gain = -1.f,
                .along = nesterov_ ? -nu_ * mu(r) : -nu_,
                .beside = nesterov_ ? nu_ : 0});
  }
  // The same along a given Delta.
  void step_along(int64_t r, const Tensor& delta, const Tensor& z, const Tensor& m) const {
    scale(m, mu(r)), axpy(m, 1.f, delta);
    axpy(z, nesterov_ ? -nu_ * mu(r) : -nu_, m);
    if (nesterov_) axpy(z, -nu_, delta);
  }

  // At the end of a round: with --reset-inner the local rule forgets its momentum.
  void reset_inner(Rule& rule) const {
    if (resets_) rule.reset();
  }

 private:
  double mu(int64_t r) const { return r < warmup_ ? mu_ * double(r) / double(warmup_) : mu_; }

  const double nu_, mu_;
  const bool nesterov_;
  const int64_t warmup_;
  const bool resets_;
};

}  // namespace skein::optim
