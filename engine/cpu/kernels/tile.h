// The inner loops of convolutions: up to 6 x 2 or 12 x 2 vectors of sums stay in registers.
//
// Both take cells of four bytes: one f32, or two bf16 whose products are added to
// one sum (engine/cpu/kernels.h).
#pragma once
#include <algorithm>
#include <utility>

#include "engine/cpu/kernels.h"
#include "engine/cpu/kernels/part.h"

namespace skein::cpu {

// Cells that are an f32 each.
template <class V>
struct Singles {
  using Sums = V;
  static constexpr int kElements = 1;
  static V operand(WordsOf<V> cells) { return V(cells); }
  static V lanes(const Cell* p) { return load_bits<V>(p); }
  static V spread(const Cell* p) { return splat<V>(load_bits<float>(p)); }
  static V multiplied(V sum, V x, V y) { return sum + x * y; }
  using Out = float;
  template <int N>
  static void put(float* p, const V (&v)[N], bool past_caches) {
    for (int j = 0; j < N; ++j)
      past_caches ? stream(p + j * kWidth<V>, v[j]) : store(p + j * kWidth<V>, v[j]);
  }
};

// N vectors of cells side by side.
template <class C, int N>
struct Lanes {
  using V = typename C::Sums;
  decltype(C::lanes(nullptr)) v[N];
  [[gnu::always_inline]] explicit Lanes(const Cell* p) {
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) v[j] = C::lanes(p + j * kWidth<V>);
  }
  [[gnu::always_inline]] void add(V (&sum)[N], const Cell* x) const {
    const auto all = C::spread(x);
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) sum[j] = C::multiplied(sum[j], all, v[j]);
  }
};

// Calls f(i, j, lane) for the vectors of M x N sums.
template <class V, int M, int N, class F>
[[gnu::always_inline]] inline void each_sum(V (&sum)[M][N], F f) {
#pragma GCC unroll 12
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) f(sum[i][j], i, j * kWidth<V>);
}

template <class V, int M, int N>
[[gnu::always_inline]] inline void add_rows(const TileResults& to, const V (&sum)[M][N]) {
#pragma GCC unroll 2
  for (int j = 0; j < N; ++j) {
    V all = sum[0][j], squares = all * all;
#pragma GCC unroll 12
    for (int i = 1; i < M; ++i) all += sum[i][j], squares += sum[i][j] * sum[i][j];
    float *s = to.sums + j * kWidth<V>, *q = to.squares + j * kWidth<V>;
    store(s, load<V>(s) + all), store(q, load<V>(q) + squares);
  }
}

template <class C, int M, int N>
[[gnu::always_inline]] inline void put_product(const TileResults& to, typename C::Sums (&sum)[M][N]) {
  using V = typename C::Sums;
  using Out = typename C::Out;
  const bool past_caches = to.past_caches;
#pragma GCC unroll 12
  for (int i = 0; i < M; ++i) {
    Out* y = static_cast<Out*>(to.rows[i]) + to.from;
    if (to.beta != 0)
#pragma GCC unroll 2
      for (int j = 0; j < N; ++j) sum[i][j] += to.beta * load<V>(y + j * kWidth<V>);
    C::put(y, sum[i], past_caches);
  }
  if (to.sums) add_rows(to, sum);
}

template <class C, int M, int N>
void tile_product(const TileProduct& t) {
  using V = typename C::Sums;
  constexpr int kLanes = N * kWidth<V>;
  V sum[M][N];
  each_sum(sum, [&](V& s, int i, int lane) { s = t.add ? load<V>(t.sums + i * t.sums_step + lane) : V{}; });
  const Cell* const* next = t.next ? t.next : t.in;
  const Cell* b = t.weights;
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const Cell *p[M], *ahead[M];
#pragma GCC unroll 12
    for (int i = 0; i < M; ++i) p[i] = t.in[i] + t.tap[tap], ahead[i] = next[i] + t.tap[tap];
    if constexpr (kWidth<V> <= 8) {  // where looking ahead costs more than it saves
#pragma GCC unroll 2
      for (int64_t k = 0; k < t.depth; ++k, b += kLanes) {
        const Lanes<C, N> lanes(b);
#pragma GCC unroll 12
        for (int i = 0; i < M; ++i) lanes.add(sum[i], p[i] + k);
      }
      continue;
    }
    for (int64_t from = 0; from < t.depth; from += kLineCells) {
#pragma GCC unroll 12
      for (int i = 0; i < M; ++i) __builtin_prefetch(ahead[i] + from);
      const int64_t to = std::min(from + kLineCells, t.depth);
#pragma GCC unroll 2
      for (int64_t k = from; k < to; ++k, b += kLanes) {
        const Lanes<C, N> lanes(b);
#pragma GCC unroll 12
        for (int i = 0; i < M; ++i) lanes.add(sum[i], p[i] + k);
      }
    }
  }
  if (t.out.rows) return put_product<C>(t.out, sum);
  each_sum(sum, [&](const V& s, int i, int lane) { store(t.sums + i * t.sums_step + lane, s); });
}

// Fetches lines into the second-level cache, one after another. Where nothing is to be fetched, it is the
// same one again and again, so that loops have no branch.
class Fetching {
 public:
  Fetching(const char* from, const void* otherwise)
      : next_(from ? from : static_cast<const char*>(otherwise)), step_(from ? kLineBytes : 0) {}
  [[gnu::always_inline]] void take(int lines) {
#pragma GCC unroll 16
    for (int i = 0; i < lines; ++i) __builtin_prefetch(next_, 0, 2), next_ += step_;
  }

 private:
  const char* next_;
  int64_t step_;
};

template <class C, int M, int N>
void tile_outer(const TileOuter& t) {
  using V = typename C::Sums;
  constexpr int kLanes = N * kWidth<V>;
  V sum[M][N];
  each_sum(sum, [](V& s, int, int) { s = V{}; });
  const Cell* b = t.y;
  Fetching fetching(t.fetch, t.sums);
  for (int64_t n = 0; n < t.at.planes; ++n)
    for (int64_t r = 0; r < t.at.rows; ++r) {
      const Cell* p = t.x + n * t.at.plane_step + r * t.at.row_step;
#pragma GCC unroll 2
      for (int64_t q = 0; q < t.at.columns; ++q, p += t.at.step, b += t.y_step) {
        const Lanes<C, N> lanes(b);
        fetching.take(1);
#pragma GCC unroll 12
        for (int i = 0; i < M; ++i) lanes.add(sum[i], p + i);
      }
    }
  each_sum(sum, [&](const V& s, int i, int lane) {
    float* to = t.sums + i * kLanes + lane;
    store(to, t.add ? load<V>(to) + s : s);
  });
}

template <class C, int M, int N>
void tile_most(const Cell* cells, int64_t times) {
  using V = typename C::Sums;
  V sum[M][N] = {};
  for (int64_t k = 0; k < times; ++k) {
    asm volatile("" : : : "memory");  // else the products would be taken once
    const Lanes<C, N> lanes(cells + M);
#pragma GCC unroll 12
    for (int i = 0; i < M; ++i) lanes.add(sum[i], cells + i);
  }
  volatile float kept;
  each_sum(sum, [&](const V& s, int, int) { kept = s[0]; });
  static_cast<void>(kept);
}

template <class C, int N, int... M>
void tile_product_of_rows(const TileProduct& t) {
  constexpr void (*kByRows[])(const TileProduct&) = {tile_product<C, M + 1, N>...};
  kByRows[t.rows - 1](t);
}

template <class C, int N, int... M>
constexpr TileKernels tile_kernels(std::integer_sequence<int, M...>) {
  return {int(sizeof...(M)),
          N * kWidth<typename C::Sums>,
          0,
          dtype_of<typename C::Out>::value,
          tile_product_of_rows<C, N, M...>,
          nullptr,
          {tile_outer<C, M + 1, N>...},
          tile_most<C, int(sizeof...(M)), N>};
}
template <class C, int M, int N>
constexpr TileKernels tile_kernels() {
  return tile_kernels<C, N>(std::make_integer_sequence<int, M>());
}

template <class V, class T>
void tile_finish(const TileFinish& f) {
  for (int64_t i = 0; i < f.rows; ++i) {
    if (!f.out[i]) continue;
    T* y = static_cast<T*>(f.out[i]) + f.from;
    const float* sums = f.sums + i * f.sums_step;
    each_part<V>(f.width, [&](int64_t j, auto io) {
      V v = io.get(sums + j);
      if (f.bias) v += io.get(f.bias + j);
      if (f.relu) v = v < V{} ? V{} : v;
      if (f.beta != 0) v += f.beta * io.get(y + j);
      io.put(y + j, v);
    });
  }
}

}  // namespace skein::cpu
