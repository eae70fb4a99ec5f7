// The small kernels around library calls. Like all our kernels they also run as loops on the host.
#include "engine/cuda/pointwise.h"

#include <cmath>

#include "engine/cuda/pack.h"
#include "engine/loops/launch.h"
#include "engine/vectors/elementwise.h"
#include "engine/vectors/narrow.h"
#include "engine/vectors/vec.h"

namespace skein::cuda {
namespace {

struct Blend {
  HD void operator()(float& y, float x, float beta) const { y = x + beta * y; }
};

// y <- max(low, y + bias + residual), V neighbors of one pixel at a time.
template <class T, int V>
struct Finish {
  T* y;
  const float* bias;
  const T* residual;
  float low;
  int64_t channels;
  HD void operator()(int64_t i) const {
    const int64_t at = i * V, c = at % channels;
    auto out = load<V>(y + at);
    const auto add = residual ? load<V>(residual + at) : Pack<T, V>{};
    for (int v = 0; v < V; ++v) {
      float z = float(out.v[v]) + (bias ? bias[c + v] : 0.f);
      if (residual) z += float(add.v[v]);
      out.v[v] = T(z < low ? low : z);
    }
    store(y + at, out);
  }
};

}  // namespace

void blend(const Tensor& y, const Tensor& x, float beta) {
  CHECK(y.size() == x.size(), y.shape(), x.shape());
  visit_float(y.dtype(), [&](auto to) {
    visit_float(x.dtype(), [&](auto from) {
      const auto run = [&](auto result) {
        each_element(y, Blend(), result, Read<decltype(from)>(x), Factor(beta));
      };
      beta == 0 ? run(Write<decltype(to)>(y)) : run(Change<decltype(to)>(y));
    });
  });
}

void finish(const Tensor& y, const Tensor& bias, const Tensor& residual, bool relu) {
  if (!bias && !residual && !relu) return;
  const int64_t channels = y.dim(-1);
  CHECK(!bias || (bias.size() == channels && bias.dtype() == kF32), bias.shape(), y.shape());
  CHECK(!residual || (residual.shape() == y.shape() && residual.dtype() == y.dtype()), residual.shape(),
        residual.dtype(), y.shape(), y.dtype());
  with_packs(channels, {&y, &residual}, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int V = decltype(width)::value;
    for_each(y.device(), y.size() / V,
             Finish<T, V>{y.data<T>(), bias ? bias.data<float>() : nullptr,
                          residual ? residual.data<T>() : nullptr, relu ? 0.f : -HUGE_VALF, channels});
  });
}

Tensor as_type(const Tensor& x, DType t) {
  if (x.dtype() == t) return x;
  if (const Tensor kept = narrow_of(x, t)) return kept;
  Tensor y(x.shape(), t, x.device());
  copy(y, x);
  return y;
}

}  // namespace skein::cuda
