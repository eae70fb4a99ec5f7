// The transforms of F(2x2, 3x3) for eight channels at once, and where the 4x4 tiles of an image lie.
//
//   V = B'dB of a 4x4 input tile,  U = GgG' of a 3x3 filter,  Y = A'(sum over channels of U V)A, 2x2
#pragma once
#include <algorithm>
#include <vector>

#include "engine/cpu/simd.h"

namespace skein::cpu {

using Tile = V8[4][4];

inline void transform_input(Tile& d) {  // in place
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const V8 a = d[0][s] - d[2][s], b = d[1][s] + d[2][s], c = d[2][s] - d[1][s], e = d[1][s] - d[3][s];
    d[0][s] = a, d[1][s] = b, d[2][s] = c, d[3][s] = e;
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const V8 a = d[r][0] - d[r][2], b = d[r][1] + d[r][2], c = d[r][2] - d[r][1], e = d[r][1] - d[r][3];
    d[r][0] = a, d[r][1] = b, d[r][2] = c, d[r][3] = e;
  }
}

inline void transform_output(const Tile& m, V8 (&y)[2][2]) {
  V8 t[2][4];
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    t[0][s] = m[0][s] + m[1][s] + m[2][s];
    t[1][s] = m[1][s] - m[2][s] - m[3][s];
  }
#pragma GCC unroll 2
  for (int r = 0; r < 2; ++r) {
    y[r][0] = t[r][0] + t[r][1] + t[r][2];
    y[r][1] = t[r][1] - t[r][2] - t[r][3];
  }
}

// The transpose of transform_output: AyA'.
inline void spread_output(const V8 (&y)[2][2], Tile& m) {
  V8 t[4][2];
#pragma GCC unroll 2
  for (int s = 0; s < 2; ++s)
    t[0][s] = y[0][s], t[1][s] = y[0][s] + y[1][s], t[2][s] = y[0][s] - y[1][s], t[3][s] = -y[1][s];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
    m[r][0] = t[r][0], m[r][1] = t[r][0] + t[r][1], m[r][2] = t[r][0] - t[r][1], m[r][3] = -t[r][1];
}

inline void transform_filter(const V8 (&g)[3][3], Tile& u) {
  V8 t[4][3];
#pragma GCC unroll 3
  for (int s = 0; s < 3; ++s) {
    const V8 even = 0.5f * (g[0][s] + g[2][s]), odd = 0.5f * g[1][s];
    t[0][s] = g[0][s], t[1][s] = even + odd, t[2][s] = even - odd, t[3][s] = g[2][s];
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const V8 even = 0.5f * (t[r][0] + t[r][2]), odd = 0.5f * t[r][1];
    u[r][0] = t[r][0], u[r][1] = even + odd, u[r][2] = even - odd, u[r][3] = t[r][2];
  }
}

// The transpose of transform_filter: G'uG.
inline void gather_filter(const Tile& u, V8 (&g)[3][3]) {
  V8 t[3][4];
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const V8 even = 0.5f * (u[1][s] + u[2][s]);
    t[0][s] = u[0][s] + even, t[1][s] = 0.5f * (u[1][s] - u[2][s]), t[2][s] = even + u[3][s];
  }
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) {
    const V8 even = 0.5f * (t[r][1] + t[r][2]);
    g[r][0] = t[r][0] + even, g[r][1] = 0.5f * (t[r][1] - t[r][2]), g[r][2] = even + t[r][3];
  }
}

// A map [N,H,W,C] seen as 4x4 tiles two pixels apart, the first beginning `padding` before the map.
struct Tiling {
  int64_t high, wide;  // tiles
  Tiling(int64_t P, int64_t Q) : high((P + 1) / 2), wide((Q + 1) / 2) {}
  int64_t per_image() const { return high * wide; }
};

// Addresses of `side` x `side` pixels from (h, w) on; those outside the map are `zero`.
template <class T, int kSide>
inline void pixels_at(T* image, int64_t H, int64_t W, int64_t C, int64_t h, int64_t w, T* zero,
                      T* (&to)[kSide][kSide]) {
  for (int r = 0; r < kSide; ++r)
    for (int s = 0; s < kSide; ++s) {
      const bool inside = h + r >= 0 && h + r < H && w + s >= 0 && w + s < W;
      to[r][s] = inside ? image + ((h + r) * W + w + s) * C : zero;
    }
}

}  // namespace skein::cpu
