// Uphill: takes the gradient a step uphill from x, for SAM (Rule::ascent).
#pragma once
#include "engine/vectors/primal.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

// A step's loss, hits and running statistics are those at x; only its gradient is taken uphill.
class Uphill {
 public:
  Uphill(const Tensor& x, const Tensor& g, const Tensor& buffers, float radius)
      : ascent_(x, radius), g_(g), buffers_(buffers), statistics_(buffers.clone()) {}

  // Before the call g holds the gradient at x, of any norm; after it, the gradient that f has taken uphill.
  template <class F>
  void take(F f) const {
    copy(statistics_, buffers_);
    ascent_.up(g_);
    try {
      f();
    } catch (...) {
      back();
      throw;
    }
    back();
  }

 private:
  void back() const {
    ascent_.down();
    copy(buffers_, statistics_);
  }
  const Ascent ascent_;
  const Tensor g_, buffers_, statistics_;
};

}  // namespace skein::optim
