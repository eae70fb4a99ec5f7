// Uphill: gradients of optimizers that take them a step uphill from x (Rule::ascent).
#pragma once
#include "engine/vectors/primal.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

// Loss, hits and running statistics of a step are those of x; only its gradient is taken uphill.
class Uphill {
 public:
  Uphill(const Tensor& x, const Tensor& g, const Tensor& buffers, float radius)
      : ascent_(x, radius), g_(g), buffers_(buffers), statistics_(buffers.clone()) {}

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

}  // namespace skein::optim
