// Rearranges cells into the order in which tiles read them.
#pragma once
#include <algorithm>
#include <bit>
#include <utility>

#include "engine/cpu/kernels.h"
#include "engine/cpu/kernels/part.h"

namespace skein::cpu {

// The lower or the upper halves of a and b, taken in turn.
template <bool kUpper, class V, int... I>
[[gnu::always_inline]] inline V zip(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int N = sizeof...(I);  // elements of a vector
  return __builtin_shufflevector(a, b, (I / 2 + (kUpper ? N / 2 : 0) + (I % 2 ? N : 0))...);
}

// A square of W x W cells. Each pass exchanges one bit of a cell's row and column; after all of them
// it is transposed.
template <class V, int kPasses>
[[gnu::always_inline]] inline void transpose_square(V (&v)[kWidth<V>]) {
  constexpr int H = kWidth<V> / 2;
  constexpr std::make_integer_sequence<int, 2 * H> all;
  V w[2 * H];
#pragma GCC unroll 8
  for (int i = 0; i < H; ++i)
    w[2 * i] = zip<false>(v[i], v[i + H], all), w[2 * i + 1] = zip<true>(v[i], v[i + H], all);
#pragma GCC unroll 16
  for (int i = 0; i < 2 * H; ++i) v[i] = w[i];
  if constexpr (kPasses > 1) transpose_square<V, kPasses - 1>(v);
}

template <class V>
void transpose_cells(Cell* to, int64_t lanes, const Cell* from, int64_t rows, int64_t columns) {
  constexpr int64_t W = kWidth<V>;
  for (int64_t l = 0; l < lanes; l += W)
    for (int64_t k = 0; k < columns; k += W) {
      const int64_t high = std::min(W, rows - l), wide = std::min(W, columns - k);
      if (high == W && wide == W) {
        V v[W];
        for (int64_t i = 0; i < W; ++i) v[i] = load_bits<V>(from + (l + i) * columns + k);
        transpose_square<V, std::countr_zero(unsigned(W))>(v);
        for (int64_t i = 0; i < W; ++i) __builtin_memcpy(to + (k + i) * lanes + l, &v[i], sizeof(V));
        continue;
      }
      for (int64_t i = 0; i < wide; ++i)
        for (int64_t j = 0; j < W; ++j)
          to[(k + i) * lanes + l + j] = j < high ? from[(l + j) * columns + k + i] : 0;
    }
}

// A bf16 number; a cell holds two.
struct Half {
  bf16 value;
};

// A cell of each channel: element a as f32, or the halves a and b.
template <class V, class T, class Io>
[[gnu::always_inline]] inline WordsOf<V> cells_of(const T* a, const T*, const Io& io) {
  return WordsOf<V>(io.get(a));
}
template <class V, class Io>
[[gnu::always_inline]] inline WordsOf<V> cells_of(const Half* a, const Half* b, const Io& io) {
  return io.get_bits(&b->value) << 16 | io.get_bits(&a->value);
}

// to[i] = (a[i], b[i]), for i < n.
template <class V>
void pair_cells(Cell* to, const bf16* a, const bf16* b, int64_t n) {
  constexpr int64_t W = kWidth<V>;
  using Halves = typename Vectors<2 * W>::Halves;
  constexpr std::make_integer_sequence<int, 2 * W> all;
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    const auto x = load_bits<Halves>(a + i), y = load_bits<Halves>(b + i);
    const Halves lower = zip<false>(x, y, all), upper = zip<true>(x, y, all);
    __builtin_memcpy(to + i, &lower, sizeof lower);
    __builtin_memcpy(to + i + W, &upper, sizeof upper);
  }
  for (; i < n; ++i) to[i] = uint32_t(a[i].bits) | uint32_t(b[i].bits) << 16;
}

// Pixel by pixel, as they lie in memory; those some pixels further are fetched, which processors do not
// foresee if a group is a part of a pixel.
template <class V, class T>
void pack_cells(const PackRow& p) {
  constexpr int64_t W = kWidth<V>, kAhead = 16, kLine = 64 / int64_t(sizeof(T));
  const auto of = [&p](const void* const* at, int64_t w) { return static_cast<const T*>(at[w * p.step]); };
  for (int64_t w = 0; w < p.columns; ++w) {
    const void* const* const others = p.b ? p.b : p.a;
    const int64_t next = std::min(w + kAhead, p.columns - 1);
    const T *a = of(p.a, w), *b = of(others, w), *next_a = of(p.a, next), *next_b = of(others, next);
    for (int64_t g = 0; g < p.groups; ++g)
      for (int64_t i = 0; i < p.slot; i += W) {
        const int64_t from = p.first[g] + i, left = p.channels - from;
        const auto put = [&](auto io) {
          const WordsOf<V> v = cells_of<V>(a + from, b + from, io);
          __builtin_memcpy(p.to + g * p.group + w * p.slot + i, &v, sizeof v);
        };
        if (i % kLine == 0) __builtin_prefetch(next_a + from), __builtin_prefetch(next_b + from);
        if (left >= W)
          put(Whole<V>());
        else if (left > 0)
          put(Part<V>{left});
        else
          std::fill_n(p.to + g * p.group + w * p.slot + i, W, 0);
      }
  }
}

// y <- x + beta y
template <class V, class T>
void blend_elements(void* y, const void* x, float beta, int64_t n) {
  T* to = static_cast<T*>(y);
  each_part<V>(n, [=, from = static_cast<const T*>(x)](int64_t i, auto io) {
    io.put(to + i, io.get(from + i) + beta * io.get(to + i));
  });
}

}  // namespace skein::cpu
