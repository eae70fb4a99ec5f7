// The inner loops of grouped convolutions. Where a group has fewer channels than a vector, a vector holds
// several groups, and a shuffle gives every lane its own group's channel, so that no multiply-add is wasted
// on zeros between groups.
#pragma once
#include <algorithm>
#include <type_traits>
#include <utility>

#include "engine/cpu/kernels.h"
#include "engine/cpu/kernels/tile.h"

namespace skein::cpu {

// Lane l takes cell l / K * D + k of v: the k-th of its group, when groups are K lanes and D cells wide.
template <class Cells, int K, int D, int k, int... L>
[[gnu::always_inline]] inline auto pick(Cells v, std::integer_sequence<int, L...>) {
  return __builtin_shufflevector(v, v, (L / K * D + k)...);
}
// Every quarter takes `together` cells of its group, from the first-th on.
template <class Cells, int K, int D, int first, int together, int... L>
[[gnu::always_inline]] inline auto in_quarters(Cells v, std::integer_sequence<int, L...>) {
  return __builtin_shufflevector(v, v, (L / K * D + first + L % together)...);
}
// What `pick` takes, from the cells at p. On x86 a shuffle across the quarters of a vector of 16 costs more
// than one within them, so where it takes both, the first serves up to four k. The empty statement keeps the
// compiler from merging them again.
template <class C, int K, int D, int k>
[[gnu::always_inline]] inline auto spread_of_group(const Cell* p) {
  constexpr int W = kWidth<typename C::Sums>;
  constexpr std::make_integer_sequence<int, W> all;
  const auto cells = load_bits<typename Vectors<W * D / K>::Words>(p);
#ifdef __x86_64__
  if constexpr (W == 16 && K >= 4 && (K == 8 || D < K)) {
    constexpr int kTogether = D < 4 ? D : 4;
    auto quarters = in_quarters<decltype(cells), K, D, k / kTogether * kTogether, kTogether>(cells, all);
    asm("" : "+v"(quarters));
    return C::operand(pick<decltype(quarters), 4, 4, k % kTogether>(quarters, all));
  }
#endif
  return C::operand(pick<decltype(cells), K, D, k>(cells, all));
}

// Calls f(k) for every k < N, a constant of its own type.
template <int N, class F>
[[gnu::always_inline]] inline void each_constant(F f) {
  [&]<int... k>(std::integer_sequence<int, k...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, k>()), ...);
  }
  (std::make_integer_sequence<int, N>());
}

// N pixels at a time, the last N of a row maybe for the second time. K is the lanes of a group, or 0 if all
// lanes belong to one.
template <class C, int K, int N>
void grouped_product(const GroupedProduct& p) {
  using V = typename C::Sums;
  constexpr int W = kWidth<V>, D = K / C::kElements;
  for (int64_t r = 0; r < p.rows; ++r)
    for (int64_t q = 0; q < p.columns; q += N) {
      const int64_t first = std::min(q, p.columns - N);
      const Cell *in = p.in + r * p.in_row + first * p.in_step, *w = p.weights;
      V sum[N] = {};
      for (int64_t t = 0; t < p.taps; ++t) {
        const Cell* x = in + p.tap[t];
        if constexpr (K > 0)
          each_constant<D>([&](auto k) __attribute__((always_inline)) {
            const auto weight = C::lanes(w);
#pragma GCC unroll 14
            for (int i = 0; i < N; ++i)
              sum[i] = C::multiplied(sum[i], spread_of_group<C, K, D, k()>(x + i * p.in_step), weight);
            w += W;
          });
        else
          for (int64_t k = 0; k < p.depth; ++k, w += W) {
            const auto weight = C::lanes(w);
#pragma GCC unroll 14
            for (int i = 0; i < N; ++i)
              sum[i] = C::multiplied(sum[i], C::spread(x + i * p.in_step + k), weight);
          }
      }
      const int64_t at = r * p.to_row + first * p.to_step;
#pragma GCC unroll 14
      for (int i = 0; i < N; ++i) {
        if (p.results)
          C::put(static_cast<typename C::Out*>(p.to) + at + i * p.to_step, {sum[i]}, p.past_caches);
        else
          store(static_cast<float*>(p.to) + at + i * p.to_step, sum[i]);
      }
    }
}

// N taps at a time, and M outputs: all of a group if K > 0.
template <class C, int K, int M, int N>
void grouped_outer(const GroupedOuter& p) {
  using V = typename C::Sums;
  constexpr int W = kWidth<V>;
  V sum[N][M] = {};
  for (int64_t n = 0; n < p.x_at.planes; ++n)
    for (int64_t r = 0; r < p.x_at.rows; ++r) {
      const Cell* x = p.x + n * p.x_at.plane_step + r * p.x_at.row_step;
      const Cell* y = p.y + n * p.y_at.plane_step + r * p.y_at.row_step;
      for (int64_t q = 0; q < p.x_at.columns; ++q, x += p.x_at.step, y += p.y_at.step) {
        const auto add = [&](auto k, const auto& dy) __attribute__((always_inline)) {
#pragma GCC unroll 5
          for (int t = 0; t < N; ++t) sum[t][k] = C::multiplied(sum[t][k], C::lanes(x + p.tap[t]), dy);
        };
        if constexpr (K > 0)
          each_constant<M>([&](auto k)
                               __attribute__((always_inline)) { add(k, spread_of_group<C, K, K, k()>(y)); });
        else
          each_constant<M>([&](auto k) __attribute__((always_inline)) { add(k, C::spread(y + k())); });
      }
    }
#pragma GCC unroll 5
  for (int t = 0; t < N; ++t)
#pragma GCC unroll 8
    for (int k = 0; k < M; ++k) {
      float* to = p.sums + t * p.sums_step + k * W;
      store(to, p.add ? load<V>(to) + sum[t][k] : sum[t][k]);
    }
}

// Pixels and taps that are summed at once: as registers allow.
template <class C>
inline constexpr int kPixelsOf = kWidth<typename C::Sums> == 16 ? kMostGroupedPixels : 8;
template <class C, int M>
inline constexpr int kTapsOf = kWidth<typename C::Sums> == 16 && M <= 4 ? 5 : 3;

template <class C, int K, int M, int... N, int... T>
constexpr GroupedRow grouped_row(std::integer_sequence<int, N...>, std::integer_sequence<int, T...>) {
  return {
      sizeof...(N), M, sizeof...(T), {grouped_product<C, K, N + 1>...}, {grouped_outer<C, K, M, T + 1>...}};
}
template <class C, int K, int M>
constexpr GroupedRow grouped_row() {
  return grouped_row<C, K, M>(std::make_integer_sequence<int, kPixelsOf<C>>(),
                              std::make_integer_sequence<int, kTapsOf<C, M>>());
}
// Groups narrower than a vector; others have no row.
template <class C, int K>
constexpr GroupedRow narrow_row() {
  if constexpr (K < kWidth<typename C::Sums> && K >= C::kElements)
    return grouped_row<C, K, K>();
  else
    return {};
}
template <class C>
constexpr GroupedKernels grouped_kernels() {
  return {dtype_of<typename C::Out>::value, narrow_row<C, 2>(), narrow_row<C, 4>(), narrow_row<C, 8>(),
          grouped_row<C, 0, kWidth<typename C::Sums> / 2>()};
}

}  // namespace skein::cpu
