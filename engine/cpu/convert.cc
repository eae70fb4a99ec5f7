// Conversion loops; whether to wake a team depends on the length alone.
#include "engine/cpu/convert.h"

namespace skein::cpu {

namespace {
constexpr int64_t kParallel = 1 << 15;
}

void widen(float* y, const bf16* x, int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kParallel)
  for (int64_t i = 0; i < n; ++i) y[i] = float(x[i]);
}

void narrow(bf16* y, const float* x, int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kParallel)
  for (int64_t i = 0; i < n; ++i) y[i] = bf16(x[i]);
}

Tensor as_f32(const Tensor& t) {
  if (t.dtype() == kF32) return t;
  Tensor y(t.shape(), kF32);
  widen(y.data<float>(), t.data<bf16>(), t.size());
  return y;
}

Tensor as_bf16(const Tensor& t) {
  if (t.dtype() == kBF16) return t;
  Tensor y(t.shape(), kBF16);
  narrow(y.data<bf16>(), t.data<float>(), t.size());
  return y;
}

void blend(const Tensor& t, const float* values, float beta) {
  const int64_t n = t.size();
  visit_float(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* y = t.data<T>();
    if (beta == 0) {  // y may hold anything, NaN too
#pragma omp parallel for simd schedule(static) if (n > kParallel)
      for (int64_t i = 0; i < n; ++i) y[i] = T(values[i]);
      return;
    }
#pragma omp parallel for simd schedule(static) if (n > kParallel)
    for (int64_t i = 0; i < n; ++i) y[i] = T(values[i] + beta * float(y[i]));
  });
}

}  // namespace skein::cpu
