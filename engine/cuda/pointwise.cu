// The small kernels that stand around library calls; as all our kernels they also run as loops on the host.
#include "engine/cuda/pointwise.h"

#include <cmath>

#include "engine/launch.h"
#include "engine/narrow.h"
#include "engine/vec.h"

namespace skein::cuda {
namespace {

template <class Y, class X>
struct Blend {
  Y* y;
  const X* x;
  float beta;
  HD void operator()(int64_t i) const { y[i] = Y(float(x[i]) + (beta == 0 ? 0.f : beta * float(y[i]))); }
};

template <class T>
struct AddBiasRow {
  T* y;
  const float* bias;
  float low;
  HD void operator()(int64_t c) const {
    const float v = float(y[c]) + (bias ? bias[c] : 0.f);
    y[c] = T(v < low ? low : v);
  }
};
template <class T>
struct AddBias {
  T* y;
  const float* bias;
  float low;
  int64_t channels;
  HD AddBiasRow<T> row(int64_t r) const { return {y + r * channels, bias, low}; }
};

}  // namespace

void blend(const Tensor& y, const Tensor& x, float beta) {
  CHECK(y.size() == x.size(), y.shape(), x.shape());
  visit_float(y.dtype(), [&](auto to) {
    visit_float(x.dtype(), [&](auto from) {
      using Y = decltype(to);
      using X = decltype(from);
      for_each(y.device(), y.size(), Blend<Y, X>{y.data<Y>(), x.data<X>(), beta});
    });
  });
}

void add_bias(const Tensor& y, const Tensor& bias, bool relu) {
  if (!bias && !relu) return;
  const int64_t channels = y.dim(-1);
  CHECK(!bias || (bias.size() == channels && bias.dtype() == kF32), bias.shape(), y.shape());
  visit_float(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_row(
        y.device(), y.size() / channels, channels,
        AddBias<T>{y.data<T>(), bias ? bias.data<float>() : nullptr, relu ? 0.f : -HUGE_VALF, channels});
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
