// The two inner loops of convolution on 16 vector registers of 8 floats: up to 6 x 16 sums stay in registers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "engine/cpu/simd.h"

namespace skein::cpu {

inline constexpr int kRows = 6, kLanes = 16;

// sum[i][:] += sum over taps t and k < depth of a[i][taps[t] + k] * b[(t depth + k) 16 + :]
template <int M>
inline void dot_tile(const float* const* a, const int64_t* taps, int64_t tap_count, int64_t depth,
                     const float* b, V8 (&sum)[M][2]) {
  for (int64_t t = 0; t < tap_count; ++t) {
    const float* p[M];
#pragma GCC unroll 6
    for (int i = 0; i < M; ++i) p[i] = a[i] + taps[t];
#pragma GCC unroll 4
    for (int64_t k = 0; k < depth; ++k, b += kLanes) {
      const V8 b0 = load8(b), b1 = load8(b + 8);
#pragma GCC unroll 6
      for (int i = 0; i < M; ++i) {
        const V8 x = splat<V8>(p[i][k]);
        sum[i][0] += x * b0;
        sum[i][1] += x * b1;
      }
    }
  }
}

// The layout of pixels: planes of rows of columns, with these steps in a, and dense in b.
struct Pixels {
  int64_t planes, rows, columns, plane_step, row_step, step;
};

// to[i][:] = (add ? to[i][:] : 0) + sum over pixels of a[pixel + i] * b[pixel][:]
template <int M>
inline void outer_tile(const float* a, const float* b, const Pixels& at, float* to, bool add) {
  V8 sum[M][2];
#pragma GCC unroll 6
  for (int i = 0; i < M; ++i) sum[i][0] = sum[i][1] = V8{};
  for (int64_t n = 0; n < at.planes; ++n)
    for (int64_t r = 0; r < at.rows; ++r) {
      const float* p = a + n * at.plane_step + r * at.row_step;
#pragma GCC unroll 2
      for (int64_t q = 0; q < at.columns; ++q, p += at.step, b += kLanes) {
        const V8 b0 = load8(b), b1 = load8(b + 8);
#pragma GCC unroll 6
        for (int i = 0; i < M; ++i) {
          const V8 x = splat<V8>(p[i]);
          sum[i][0] += x * b0;
          sum[i][1] += x * b1;
        }
      }
    }
#pragma GCC unroll 6
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < 2; ++j) {
      float* y = to + i * kLanes + j * 8;
      store8(y, add ? load8(y) + sum[i][j] : sum[i][j]);
    }
}

// Calls f with std::integral_constant-like M for 1 <= m <= 6.
template <class F>
inline void with_rows(int64_t m, F&& f) {
  switch (m) {
    case 1:
      return f(std::integral_constant<int, 1>{});
    case 2:
      return f(std::integral_constant<int, 2>{});
    case 3:
      return f(std::integral_constant<int, 3>{});
    case 4:
      return f(std::integral_constant<int, 4>{});
    case 5:
      return f(std::integral_constant<int, 5>{});
    default:
      return f(std::integral_constant<int, 6>{});
  }
}

// Splits n things into as few groups of at most kRows as possible, of nearly equal size: 49 = 4 x 6 + 5 x 5,
// because a group of one or two costs nearly as much as one of four.
struct Groups {
  int64_t n, count = (n + kRows - 1) / kRows, each = count ? n / count : 0, larger = n - each * count;
  int64_t first(int64_t i) const { return each * i + std::min(i, larger); }
  int64_t size(int64_t i) const { return each + (i < larger ? 1 : 0); }
  int64_t of(int64_t thing) const {  // the group it is in
    const int64_t in_larger = larger * (each + 1);
    return thing < in_larger ? thing / (each + 1) : larger + (thing - in_larger) / each;
  }
};

}  // namespace skein::cpu
