// The inner loops of depthwise convolutions: every channel is a lane of its own, so no sum crosses
// lanes. A vector of channels goes over all pixels of a block, so that its part of the windows stays in
// the first-level cache.
#pragma once
#include <algorithm>
#include <utility>

#include "engine/cpu/kernels.h"
#include "engine/cpu/kernels/part.h"

namespace skein::cpu {

// N pixels at a time, the last N of a row maybe for the second time.
template <class V, int N>
void depthwise_product(const DepthwiseProduct& p) {
  for (int64_t l = 0; l < p.lanes; l += kWidth<V>)
    for (int64_t r = 0; r < p.rows; ++r)
      for (int64_t q = 0; q < p.columns; q += N) {
        const int64_t first = std::min(q, p.columns - N);
        const float *w = p.weights + l, *in = p.in + r * p.in_row + first * p.in_step + l;
        V sum[N] = {};
        for (int64_t t = 0; t < p.taps; ++t, w += p.lanes) {
          const V weight = load<V>(w);
          const float* x = in + p.tap[t];
#pragma GCC unroll 8
          for (int i = 0; i < N; ++i) sum[i] += load<V>(x + i * p.in_step) * weight;
        }
        float* to = p.sums + r * p.sums_row + first * p.sums_step + l;
#pragma GCC unroll 8
        for (int i = 0; i < N; ++i) store(to + i * p.sums_step, sum[i]);
      }
}

template <class V, int N>
void depthwise_outer(const DepthwiseOuter& p) {
  for (int64_t l = 0; l < p.lanes; l += kWidth<V>) {
    V sum[N] = {};
    for (int64_t n = 0; n < p.x_at.planes; ++n)
      for (int64_t r = 0; r < p.x_at.rows; ++r) {
        const float* x = p.x + n * p.x_at.plane_step + r * p.x_at.row_step + l;
        const float* y = p.y + n * p.y_at.plane_step + r * p.y_at.row_step + l;
        for (int64_t q = 0; q < p.x_at.columns; ++q, x += p.x_at.step, y += p.y_at.step) {
          const V dy = load<V>(y);
#pragma GCC unroll 9
          for (int t = 0; t < N; ++t) sum[t] += load<V>(x + p.tap[t]) * dy;
        }
      }
#pragma GCC unroll 9
    for (int t = 0; t < N; ++t) {
      float* to = p.sums + t * p.lanes + l;
      store(to, p.add ? load<V>(to) + sum[t] : sum[t]);
    }
  }
}

template <class V, int... N, int... M>
constexpr DepthwiseKernels depthwise_kernels(std::integer_sequence<int, N...>,
                                             std::integer_sequence<int, M...>) {
  return {{depthwise_product<V, N + 1>...}, {depthwise_outer<V, M + 1>...}};
}
template <class V>
constexpr DepthwiseKernels depthwise_kernels() {
  return depthwise_kernels<V>(std::make_integer_sequence<int, kMostPixels>(),
                              std::make_integer_sequence<int, kMostTaps>());
}

}  // namespace skein::cpu
