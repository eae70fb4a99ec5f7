// Draws: a sequence of random numbers of several distributions from one family of Philox draws.
#pragma once
#include <cmath>

#include "engine/random.h"

namespace skein::data {

class Draws {
 public:
  explicit Draws(const Draw& d) : draw_(d) {}
  double uniform() {  // in (0, 1)
    const double high = draw_.bits(next_), low = draw_.bits(next_ + 1);
    next_ += 2;
    return (high * 0x1p32 + low + 0.5) * 0x1p-64;
  }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }
  // The logarithm of a gamma-distributed number; Marsaglia & Tsang 2000. Below shape 1 the draw is one of
  // shape + 1 times u^(1/shape), which may be too small for a double.
  double log_gamma(double shape) {
    const double boost = shape < 1 ? std::log(uniform()) / shape : 0;
    const double d = (shape < 1 ? shape + 1 : shape) - 1. / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = normal(), v = std::pow(1 + c * x, 3);
      if (v > 0 && std::log(uniform()) < x * x / 2 + d * (1 - v + std::log(v)))
        return boost + std::log(d * v);
    }
  }
  // A number of the symmetric beta distribution: one gamma draw divided by the sum of two.
  double beta(double shape) {
    const double a = log_gamma(shape), b = log_gamma(shape);
    return 1 / (1 + std::exp(b - a));
  }

 private:
  Draw draw_;
  uint64_t next_ = 0;
};

}  // namespace skein::data
