// Conversion loops. They run in parallel depending on their length alone.
#include "engine/cpu/convert.h"

#include <algorithm>

#include "engine/cpu/kernels.h"
#include "engine/cpu/simd.h"

namespace skein::cpu {

namespace {
constexpr int64_t kParallel = 1 << 15;

// Calls f(first, its address, count) for pieces of t.
template <class F>
void in_pieces(const Tensor& t, const F& f) {
  constexpr int64_t kPiece = 1 << 12;
  CHECK(is_float(t.dtype()), t.dtype());
  char* const at = static_cast<char*>(t.raw());
#pragma omp parallel for schedule(static) if (t.size() > kParallel)
  for (int64_t i = 0; i < t.size(); i += kPiece)
    f(i, at + i * size_of(t.dtype()), std::min(kPiece, t.size() - i));
}

}  // namespace

void widen(float* y, const Tensor& t) {
  const int64_t n = t.size(), whole = n - n % 8;
  visit_float(t.dtype(), [&](auto zero) {
    const auto* x = t.data<decltype(zero)>();
#pragma omp parallel for schedule(static) if (n > kParallel)
    for (int64_t i = 0; i < whole; i += 8) store8(y + i, load8(x + i));
    for (int64_t i = whole; i < n; ++i) y[i] = float(x[i]);
  });
}

void narrow(const Tensor& t, const float* x) { blend(t, x, 0); }

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
  const auto run = kernels().blend[element(t.dtype())];
  in_pieces(t, [&](int64_t i, void* y, int64_t n) {
    run(y, static_cast<const char*>(x.raw()) + i * size_of(x.dtype()), beta, n);
  });
}

void blend(const Tensor& t, const float* values, float beta) {
  const auto finish = kernels().finish[element(t.dtype())];
  in_pieces(t, [&](int64_t i, void* y, int64_t n) {
    finish({.out = &y,
            .sums = values + i,
            .bias = nullptr,
            .rows = 1,
            .sums_step = 0,
            .from = 0,
            .width = n,
            .beta = beta,
            .relu = false});
  });
}

}  // namespace skein::cpu
