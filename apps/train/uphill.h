// Uphill: gradients of optimizers that take them a step uphill from x (Rule::ascent).
#pragma once
#include "engine/vectors/primal.h"
#include "nn/module.h"

namespace skein::apps {

// Loss, hits and running statistics of a step are those of x; only its gradient is taken uphill.
class Uphill {
 public:
  Uphill(const nn::Flat& flat, float radius)
      : ascent_(flat.x, radius), g_(flat.g), buffers_(flat.buffers), statistics_(buffers_.clone()) {}

  // g holds the gradient at x, of any length; then that which f takes uphill.
  template <class F>
  void take(F f) const {
    copy(statistics_, buffers_);
    ascent_.up(g_);
    f();
    ascent_.down();
    copy(buffers_, statistics_);
  }

 private:
  const Ascent ascent_;
  const Tensor g_, buffers_, statistics_;
};

}  // namespace skein::apps
