// Quadratic: a loss whose optimum is known, and the gradients of one of its workers.
//
//   f(x) = 1/2 sum_j a_j (x_j - o_j)^2     o_j = 1 / sqrt(d), so that x = 0 is 1 from the optimum
//   g    = f'(x) + zeta v + noise e        a_j falls from 1 to 1 / condition in equal ratios
//
// v, of length 1, is the worker's own: workers i and i + n / 2 have opposite ones, so that f is the mean of
// what the workers minimize (an odd worker out has none). e is normal and new in each step, of length 1 in
// the mean square.
#pragma once
#include "apps/launch/world_file.h"
#include "engine/tensor.h"

namespace skein::apps {

class Quadratic {
 public:
  Quadratic(const GradientPlan&, uint64_t seed, int worker, int workers);
  void gradient(const Tensor& g, const Tensor& x, int64_t step) const;  // f32 [d]
  double loss(const Tensor& x) const;                                   // f(x), of all; 0 at the optimum
  double distance(const Tensor& x) const;                               // |x - o|

 private:
  double slope(int64_t j) const { return slopes_[size_t(j)]; }
  const double noise_, optimum_;
  const uint64_t seed_;
  const int worker_;
  std::vector<float> slopes_;
  Tensor bias_;    // zeta v
  Tensor chance_;  // of a step; empty without noise
};

}  // namespace skein::apps
