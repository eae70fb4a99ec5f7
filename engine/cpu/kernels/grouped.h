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

// Calls f(k) for every cell of a group. K is the lanes of a group, of which k is then a constant of its own
// type, or 0 if all lanes belong to one.
template <class C, int K, class F>
[[gnu::always_inline]] inline void each_cell(int64_t depth, F f) {
  if constexpr (K > 0) {
    each_constant<K / C::kElements>(f);
  } else {
    for (int64_t k = 0; k < depth; ++k) f(k);
  }
}
// The k-th cell of the lane's group, in every lane.
template <class C, int K, class Index>
[[gnu::always_inline]] inline auto spread_cell(const Cell* p, Index k) {
  if constexpr (K > 0)
    return spread_of_group<C, K, K / C::kElements, Index::value>(p);
  else
    return C::spread(p + k);
}

// The sums of N pixels and one panel. T taps at a time are in_step apart: a cell is spread once for all of
// them. What is read next is prefetched: the processor does not foresee steps of a whole pixel.
template <class C, int K, int N, int T>
[[gnu::always_inline]] inline void grouped_sums(const GroupedProduct& p, const Cell* in, const Cell* weights,
                                                Fetching& fetching, typename C::Sums (&sum)[N]) {
  constexpr int W = kWidth<typename C::Sums>;
  const int64_t depth = K > 0 ? K / C::kElements : p.taps.depth;
  for (int64_t t = 0; t < p.taps.count; t += T) {
    const Cell *x = in + p.taps.in[t], *w = weights + p.taps.weights[t];
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) __builtin_prefetch(x + p.next + i * p.in_step);
    if (p.fetch) fetching.take((grouped_lines(T, C::kElements) * N * T + 8) / 9);
    each_cell<C, K>(
        depth, [&](auto k) __attribute__((always_inline)) {
          decltype(C::lanes(w)) weight[T];
#pragma GCC unroll 3
          for (int j = 0; j < T; ++j) weight[j] = C::lanes(w + (j * depth + k) * W);
#pragma GCC unroll 16
          for (int i = 0; i < N + T - 1; ++i) {
            const auto cell = spread_cell<C, K>(x + i * p.in_step, k);
#pragma GCC unroll 3
            for (int j = 0; j < T; ++j)
              if (0 <= i - j && i - j < N) sum[i - j] = C::multiplied(sum[i - j], cell, weight[j]);
          }
        });
  }
}

// The results of a panel at N pixels. Those that take half a line wait for the next panel's where they are
// written past the caches, which takes whole lines.
template <class C, int N, bool past_caches>
class GroupedResults {
  using V = typename C::Sums;
  using Out = typename C::Out;

 public:
  [[gnu::always_inline]] void put(Out* to, int64_t step, int64_t panel, const V (&sum)[N]) {
#pragma GCC unroll 14
    for (int i = 0; i < N; ++i)
      if constexpr (!past_caches || kWhole)
        C::put(to + i * step, {sum[i]}, past_caches);
      else if (panel % 2)
        C::put(to + i * step - kWidth<V>, {before_[i], sum[i]}, true);
      else
        before_[i] = sum[i];
  }

 private:
  static constexpr bool kWhole = kWidth<V> * sizeof(Out) != 32;
  V before_[N] = {};
};

// N pixels at a time, the last N of a row maybe for the second time: all panels of them, so that whole lines
// of the caches are read and written.
template <class C, int K, int N, int T, bool past_caches>
void grouped_rows(const GroupedProduct& p) {
  using V = typename C::Sums;
  Fetching fetching(p.fetch, p.weights);
  GroupedResults<C, N, past_caches> results;
  for (int64_t r = 0; r < p.rows; ++r)
    for (int64_t q = 0; q < p.columns; q += N) {
      const int64_t first = std::min(q, p.columns - N);
      const Cell *in = p.in + r * p.in_row + first * p.in_step, *weights = p.weights;
      int64_t at = r * p.to_row + first * p.to_step, shared = p.panels.shared;
      for (int64_t j = 0; j < p.panels.count; ++j, weights += p.panels.weights, at += kWidth<V>) {
        V sum[N] = {};
        grouped_sums<C, K, N, T>(p, in, weights, fetching, sum);
        if (past_caches || p.results)
          results.put(static_cast<typename C::Out*>(p.to) + at, p.to_step, j, sum);
        else
#pragma GCC unroll 14
          for (int i = 0; i < N; ++i) store(static_cast<float*>(p.to) + at + i * p.to_step, sum[i]);
        if (--shared == 0) in += p.panels.in_step, shared = p.panels.shared;
      }
    }
}
template <class C, int K, int N, int T>
void grouped_product(const GroupedProduct& p) {
  p.past_caches ? grouped_rows<C, K, N, T, true>(p) : grouped_rows<C, K, N, T, false>(p);
}

// N taps at a time, and M outputs: all of a group if K > 0.
template <class C, int K, int M, int N>
void grouped_outer(const GroupedOuter& p) {
  using V = typename C::Sums;
  constexpr int W = kWidth<V>;
  V sum[N][M] = {};
  Fetching fetching(p.fetch, p.sums);
  for (int64_t n = 0; n < p.x_at.planes; ++n)
    for (int64_t r = 0; r < p.x_at.rows; ++r) {
      const Cell* x = p.x + n * p.x_at.plane_step + r * p.x_at.row_step;
      const Cell* y = p.y + n * p.y_at.plane_step + r * p.y_at.row_step;
      for (int64_t q = 0; q < p.x_at.columns; ++q, x += p.x_at.step, y += p.y_at.step) {
        fetching.take(2);
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
  return {sizeof...(N),
          M,
          sizeof...(T),
          {{grouped_product<C, K, N + 1, 1>...},
           {grouped_product<C, K, N + 1, 2>...},
           {grouped_product<C, K, N + 1, 3>...}},
          {grouped_outer<C, K, M, T + 1>...}};
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
