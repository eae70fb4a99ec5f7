// Draws are pure functions of (seed, worker, step).
#include "apps/flat/quadratic.h"

#include <cmath>

#include "engine/random.h"
#include "engine/vectors/vec.h"

namespace skein::apps {
namespace {

std::vector<float> slopes_of(const GradientPlan& g) {
  std::vector<float> a(static_cast<size_t>(g.dimension));
  for (size_t j = 0; j < a.size(); ++j)
    a[j] = float(std::pow(g.condition, -double(j) / std::max(1.0, double(a.size() - 1))));
  return a;
}

// Of length zeta.
Tensor bias_of(const GradientPlan& g, uint64_t seed, int worker, int workers) {
  const int half = workers / 2;
  if (g.zeta == 0 || worker >= 2 * half) return Tensor::zeros({g.dimension});
  Tensor v({g.dimension});
  constexpr uint64_t kBeforeAllSteps = ~uint64_t(0);
  fill_normal(v, {seed, Purpose::kSynthetic, kBeforeAllSteps, uint32_t(worker % half)}, 0, 1);
  scale(v, (worker < half ? g.zeta : -g.zeta) / norm(v));
  return v;
}

}  // namespace

Quadratic::Quadratic(const GradientPlan& g, uint64_t seed, int worker, int workers)
    : noise_(g.noise / std::sqrt(double(g.dimension))),
      optimum_(1 / std::sqrt(double(g.dimension))),
      seed_(seed),
      worker_(worker),
      slopes_(slopes_of(g)),
      bias_(bias_of(g, seed, worker, workers)) {
  if (g.noise > 0) chance_ = Tensor({g.dimension});
}

void Quadratic::gradient(const Tensor& g, const Tensor& x, int64_t step) const {
  float* to = g.data<float>();
  const float *at = x.data<float>(), *bias = bias_.data<float>(), *a = slopes_.data();
  const float optimum = float(optimum_);
  const int64_t n = x.size();
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) to[j] = a[j] * (at[j] - optimum) + bias[j];
  if (!chance_) return;
  fill_normal(chance_, {seed_, Purpose::kSynthetic, uint64_t(step), uint32_t(worker_)}, 0, float(noise_));
  axpy(g, 1.f, chance_);
}

double Quadratic::loss(const Tensor& x) const {
  const float* at = x.data<float>();
  double sum = 0;
  for (int64_t j = 0; j < x.size(); ++j) sum += slope(j) * (at[j] - optimum_) * (at[j] - optimum_);
  return sum / 2;
}

double Quadratic::distance(const Tensor& x) const {
  const float* at = x.data<float>();
  double sum = 0;
  for (int64_t j = 0; j < x.size(); ++j) sum += (at[j] - optimum_) * (at[j] - optimum_);
  return std::sqrt(sum);
}

}  // namespace skein::apps
