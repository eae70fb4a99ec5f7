// Ema: the exponential moving average of the weights, and of the running statistics beside them.
#pragma once
#include "engine/archive.h"
#include "nn/module.h"

namespace skein::apps {

// After each step, in the t-th update:   e <- e + (1 - d) (x - e),   d = min(decay, (1 + t) / (10 + t)),
// so that the first hundreds of steps do not drag the beginning along. e starts at the model as it is.
//
// With several workers each averages its own vector, the one whose mean over the workers is the model
// (Strategy::averaged). The map is linear and d the same everywhere, so the mean of the e is the moving
// average of the consensus model, exactly but for rounding. Where workers are at different steps, each
// averages the model it trains.
class Ema {
 public:
  Ema(double decay, const nn::Flat&);
  void update(const Tensor& x, const Tensor& buffers);
  double decay_at(int64_t t) const;  // d of the t-th update; t from 1
  const Tensor& x() const { return x_; }
  const Tensor& buffers() const { return buffers_; }
  void visit(Archive&);

 private:
  const double decay_;
  Tensor x_, buffers_;
  int64_t updates_ = 0;
};

}  // namespace skein::apps
