// Ema: the exponential moving average of the weights and of the running statistics.
#pragma once
#include "engine/archive.h"
#include "nn/module.h"

namespace skein::apps {

// After each step, in the t-th update:   e <- e + (1 - d) (x - e),   d = min(decay, (1 + t) / (10 + t)),
// so that the initial model does not dominate the first hundreds of steps. e starts at the current model.
//
// With several workers each averages its own vector, the one whose mean over the workers is the model
// (Strategy::contribution). The map is linear and d is the same everywhere, so the mean of all e is the
// moving average of the consensus model, except for rounding. If workers are at different steps, each
// averages the model it trains.
class Ema {
 public:
  Ema(double decay, const nn::Flat&);
  void update(const Tensor& x, const Tensor& buffers);
  double decay_at(int64_t t) const;  // d of the t-th update, counted from 1
  const Tensor& x() const { return x_; }
  const Tensor& buffers() const { return buffers_; }
  void visit(Archive&);

 private:
  const double decay_;
  Tensor x_, buffers_;
  int64_t updates_ = 0;
};

}  // namespace skein::apps
