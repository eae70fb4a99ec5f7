// Batch norm's passes over rows of channels. Passes that add up take four rows at a time, which share what
// is loaded of their channels' constants and sums; the sums still take their rows in order. Passes that may
// write past the caches take one row at a time, because lines of several rows that are so written piece by
// piece leave the processor before they are whole.
#pragma once
#include <type_traits>

#include "engine/cpu/kernels.h"
#include "engine/cpu/kernels/part.h"

namespace skein::cpu {

inline constexpr int kStrip = 4;

// Calls step(at, j, io) for the vectors at column j of a row; `at` is where they lie in the image. A step
// holds copies of what its pass is given, which no store can change, so that they stay in registers.
template <class V, class Step>
inline void each_row(const NormRows& rows, const Step& step) {
  for (int64_t i = rows.first; i < rows.last; ++i)
    each_part<V>(rows.length, [&](int64_t j, auto io) { step(i * rows.width + j, j, io); });
}

// Calls step(i, count, j, io) for the vectors at column j of the rows i to i + count. A single row may end
// within a vector.
template <class V, class Step>
inline void each_strip(const NormRows& rows, const Step& step) {
  int64_t i = rows.first;
  for (; i + kStrip <= rows.last; i += kStrip)
    for (int64_t j = 0; j < rows.length; j += kWidth<V>)
      step(i, std::integral_constant<int, kStrip>(), j, Whole<V>());
  for (; i < rows.last; ++i)
    each_part<V>(rows.length, [&](int64_t j, auto io) { step(i, std::integral_constant<int, 1>(), j, io); });
}
// Processors do not foresee well enough in which order several rows or images are read.
template <class T>
[[gnu::always_inline]] inline void fetch_ahead(const T* p) {
  constexpr int kAhead = 2048;  // bytes
  __builtin_prefetch(reinterpret_cast<const char*>(p) + kAhead);
}

// (x - mean) k + b: written once, so that backward computes exactly the sign that forward's ReLU saw.
template <class V>
[[gnu::always_inline]] inline V affine(V x, V mean, V k, V b) {
  return (x - mean) * k + b;
}

template <class V, class T>
void norm_statistics(const NormPass& pass, const NormRows& rows, float* sums) {
  const T* x = static_cast<const T*>(pass.x);
  const float* near = pass.mean;
  float *a = sums, *b = sums + rows.width;
  each_strip<V>(rows, [=, w = rows.width](int64_t i, auto count, int64_t j, auto io) {
    const V k = load<V>(near + j);
    V s = load<V>(a + j), t = load<V>(b + j);
    for (int r = 0; r < count; ++r) {
      const T* at = x + (i + r) * w + j;
      fetch_ahead(at);
      const V d = io.get(at, k) - k;
      s += d;
      t += d * d;
    }
    store(a + j, s), store(b + j, t);
  });
}

template <class V, class T>
void norm_apply(const NormPass& pass, const NormRows& rows) {
  const T *x = static_cast<const T*>(pass.x), *residual = static_cast<const T*>(pass.residual);
  T* y = static_cast<T*>(pass.out);
  const V low = splat<V>(pass.low);
  const bool past_caches = pass.past_caches;
  each_row<V>(rows, [=](int64_t at, int64_t j, auto io) {
    fetch_ahead(x + at);
    V v = affine(io.get(x + at), load<V>(pass.mean + j), load<V>(pass.k + j), load<V>(pass.b + j));
    if (residual) fetch_ahead(residual + at), v += io.get(residual + at);
    io.put(y + at, v < low ? low : v, past_caches);  // a NaN stays a NaN
  });
  fence_streams<V>();
}

// dy where the ReLU let y through.
template <Mask kMask, class V, class T, class Io>
[[gnu::always_inline]] inline V masked(V dy, V affine_of_x, const T* y, const Io& io) {
  if constexpr (kMask == Mask::kNone) return dy;
  if constexpr (kMask == Mask::kOutput) fetch_ahead(y);
  const V out = kMask == Mask::kOutput ? io.get(y) : affine_of_x;
  return out > V{} ? dy : V{};
}

template <class V, class T, Mask kMask>
void norm_gradient_sums(const NormPass& pass, const NormRows& rows, float* sums) {
  const T *x = static_cast<const T*>(pass.x), *dy = static_cast<const T*>(pass.dy),
          *y = static_cast<const T*>(pass.y);
  T* dr = static_cast<T*>(pass.dr);
  each_strip<V>(rows, [=, &pass, w = rows.width](int64_t i, auto count, int64_t j, auto io) {
    const V mean = load<V>(pass.mean + j), k = load<V>(pass.k + j), b = load<V>(pass.b + j);
    V s = load<V>(sums + j), t = load<V>(sums + w + j);
    for (int r = 0; r < count; ++r) {
      const int64_t at = (i + r) * w + j;
      fetch_ahead(x + at), fetch_ahead(dy + at);
      const V v = io.get(x + at);
      const V d = masked<kMask>(io.get(dy + at), affine(v, mean, k, b), y + at, io);
      if (dr) io.put(dr + at, d);
      s += d;
      t += d * (v - mean);
    }
    store(sums + j, s), store(sums + w + j, t);
  });
}

template <class V, class T, Mask kMask>
void norm_gradient(const NormPass& pass, const NormRows& rows) {
  const T *x = static_cast<const T*>(pass.x), *dy = static_cast<const T*>(pass.dy),
          *y = static_cast<const T*>(pass.y);
  T *dx = static_cast<T*>(pass.out), *dr = static_cast<T*>(pass.dr);
  const float bx = pass.out_beta, br = pass.dr_beta;
  const bool past_caches = pass.past_caches;
  each_row<V>(rows, [=](int64_t at, int64_t j, auto io) {
    fetch_ahead(x + at), fetch_ahead(dy + at);
    const V v = io.get(x + at), mean = load<V>(pass.mean + j);
    const V d =
        masked<kMask>(io.get(dy + at), affine(v, mean, load<V>(pass.k + j), load<V>(pass.b + j)), y + at, io);
    if (dx) {
      V g = load<V>(pass.p + j) * d + (load<V>(pass.q + j) * (v - mean) + load<V>(pass.r + j));
      if (bx != 0) g += bx * io.get(dx + at);
      io.put(dx + at, g, past_caches);
    }
    if (dr) io.put(dr + at, br == 0 ? d : d + br * io.get(dr + at));
  });
  fence_streams<V>();
}

template <class V, class T>
constexpr NormKernels norm_kernels() {
  return {norm_statistics<V, T>,
          norm_apply<V, T>,
          {norm_gradient_sums<V, T, Mask::kNone>, norm_gradient_sums<V, T, Mask::kOutput>,
           norm_gradient_sums<V, T, Mask::kInput>},
          {norm_gradient<V, T, Mask::kNone>, norm_gradient<V, T, Mask::kOutput>,
           norm_gradient<V, T, Mask::kInput>}};
}

}  // namespace skein::cpu
