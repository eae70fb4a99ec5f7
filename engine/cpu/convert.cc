// Conversion loops. They run in parallel depending on their length alone.
#include "engine/cpu/convert.h"

#include <algorithm>

#include "engine/cpu/kernels.h"
#include "engine/cpu/simd.h"

namespace skein::cpu {

namespace {
constexpr int64_t kParallel = 1 << 15;
}

void widen(float* y, const Tensor& t) {
  const int64_t n = t.size(), whole = n - n % 8;
  visit_float(t.dtype(), [&](auto zero) {
    const auto* x = t.data<decltype(zero)>();
#pragma omp parallel for schedule(static) if (n > kParallel)
    for (int64_t i = 0; i < whole; i += 8) store8(y + i, load8(x + i));
    for (int64_t i = whole; i < n; ++i) y[i] = float(x[i]);
  });
}

void narrow(const Tensor& t, const float* x) {
  const int64_t n = t.size(), whole = n - n % 8;
  visit_float(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* y = t.data<T>();
#pragma omp parallel for schedule(static) if (n > kParallel)
    for (int64_t i = 0; i < whole; i += 8) store8(y + i, load8(x + i));
    for (int64_t i = whole; i < n; ++i) y[i] = T(x[i]);
  });
}

Tensor as_f32(const Tensor& t) {
  if (t.dtype() == kF32) return t;
  Tensor y(t.shape(), kF32);
  widen(y.data<float>(), t);
  return y;
}

Tensor as_bf16(const Tensor& t) {
  if (t.dtype() == kBF16) return t;
  const Tensor from = as_f32(t);
  Tensor y(t.shape(), kBF16);
  narrow(y, from.data<float>());
  return y;
}

void relu(const Tensor& t) {
  const int64_t n = t.size(), whole = n - n % 8;
  visit_float(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* y = t.data<T>();
#pragma omp parallel for schedule(static) if (n > kParallel)
    for (int64_t i = 0; i < whole; i += 8) {
      const V8 v = load8(y + i);
      store8(y + i, v < 0 ? V8{} : v);
    }
    for (int64_t i = whole; i < n; ++i)
      if (float(y[i]) < 0) y[i] = T(0.f);
  });
}

void add_scaled(const Tensor& t, const Tensor& x, float beta) {
  CHECK(t.dtype() == x.dtype() && t.size() == x.size(), t.dtype(), x.dtype(), t.size(), x.size());
  constexpr int64_t kPiece = 1 << 14;
  const auto run = kernels().blend[element(t.dtype())];
  const auto at = [](const Tensor& a, int64_t i) {
    return static_cast<char*>(a.raw()) + i * size_of(a.dtype());
  };
  const int64_t n = t.size();
#pragma omp parallel for schedule(static) if (n > kParallel)
  for (int64_t i = 0; i < n; i += kPiece) run(at(t, i), at(x, i), beta, std::min(kPiece, n - i));
}

void blend(const Tensor& t, const float* values, float beta) {
  const int64_t n = t.size();
  visit_float(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* y = t.data<T>();
    if (beta == 0) return narrow(t, values);  // y may hold anything, NaN too
#pragma omp parallel for simd schedule(static) if (n > kParallel)
    for (int64_t i = 0; i < n; ++i) y[i] = T(values[i] + beta * float(y[i]));
  });
}

}  // namespace skein::cpu
