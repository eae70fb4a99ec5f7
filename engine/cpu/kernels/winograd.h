// The transforms of F(2x2, 3x3) for as many channels at once as a vector holds.
//
//   V = B'dB of a 4x4 input tile,  U = GgG' of a 3x3 filter,  Y = A'(sum over channels of U V)A, 2x2
#pragma once
#include "engine/cpu/kernels.h"
#include "engine/cpu/kernels/part.h"

namespace skein::cpu {

template <class V>
using Tile = V[4][4];

template <class V>
[[gnu::always_inline]] inline void transform_input(Tile<V>& d) {  // in place
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const V a = d[0][s] - d[2][s], b = d[1][s] + d[2][s], c = d[2][s] - d[1][s], e = d[1][s] - d[3][s];
    d[0][s] = a, d[1][s] = b, d[2][s] = c, d[3][s] = e;
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const V a = d[r][0] - d[r][2], b = d[r][1] + d[r][2], c = d[r][2] - d[r][1], e = d[r][1] - d[r][3];
    d[r][0] = a, d[r][1] = b, d[r][2] = c, d[r][3] = e;
  }
}

template <class V>
[[gnu::always_inline]] inline void transform_output(const Tile<V>& m, V (&y)[2][2]) {
  V t[2][4];
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
template <class V>
[[gnu::always_inline]] inline void spread_output(const V (&y)[2][2], Tile<V>& m) {
  V t[4][2];
#pragma GCC unroll 2
  for (int s = 0; s < 2; ++s)
    t[0][s] = y[0][s], t[1][s] = y[0][s] + y[1][s], t[2][s] = y[0][s] - y[1][s], t[3][s] = -y[1][s];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
    m[r][0] = t[r][0], m[r][1] = t[r][0] + t[r][1], m[r][2] = t[r][0] - t[r][1], m[r][3] = -t[r][1];
}

template <class V>
[[gnu::always_inline]] inline void transform_filter(const V (&g)[3][3], Tile<V>& u) {
  V t[4][3];
#pragma GCC unroll 3
  for (int s = 0; s < 3; ++s) {
    const V even = 0.5f * (g[0][s] + g[2][s]), odd = 0.5f * g[1][s];
    t[0][s] = g[0][s], t[1][s] = even + odd, t[2][s] = even - odd, t[3][s] = g[2][s];
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const V even = 0.5f * (t[r][0] + t[r][2]), odd = 0.5f * t[r][1];
    u[r][0] = t[r][0], u[r][1] = even + odd, u[r][2] = even - odd, u[r][3] = t[r][2];
  }
}

// The transpose of transform_filter: G'uG.
template <class V>
[[gnu::always_inline]] inline void gather_filter(const Tile<V>& u, V (&g)[3][3]) {
  V t[3][4];
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const V even = 0.5f * (u[1][s] + u[2][s]);
    t[0][s] = u[0][s] + even, t[1][s] = 0.5f * (u[1][s] - u[2][s]), t[2][s] = even + u[3][s];
  }
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) {
    const V even = 0.5f * (t[r][1] + t[r][2]);
    g[r][0] = t[r][0] + even, g[r][1] = 0.5f * (t[r][1] - t[r][2]), g[r][2] = even + t[r][3];
  }
}

// Calls f(t, from) for the tiles first to first + count, with the addresses of their pixels.
template <class V, class T, int kSide, class F>
inline void each_tile(const WinogradMap& m, int64_t first, int64_t count, T* outside, const F& f) {
  for (int64_t t = 0; t < count; ++t) {
    const int64_t n = (first + t) / m.per_image(), at = (first + t) % m.per_image();
    T* image = static_cast<T*>(m.images) + n * m.H * m.W * m.C;
    T* pixel[kSide][kSide];
    for (int r = 0; r < kSide; ++r)
      for (int s = 0; s < kSide; ++s) {
        const int64_t h = at / m.wide * 2 - m.padding + r, w = at % m.wide * 2 - m.padding + s;
        const bool inside = h >= 0 && h < m.H && w >= 0 && w < m.W;
        pixel[r][s] = inside ? image + (h * m.W + w) * m.C : outside;
      }
    f(t, pixel);
  }
}

template <class V, class T>
void winograd_input(const WinogradMap& m, int64_t first, int64_t count, const WinogradPlanes& to) {
  T* zeros = static_cast<T*>(m.zeros);
  each_tile<V, T, 4>(m, first, count, zeros, [&](int64_t t, T* const(&from)[4][4]) {
    each_part<V>(m.C, [&](int64_t c, auto io) {
      Tile<V> d;
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) d[i / 4][i % 4] = io.get(from[i / 4][i % 4] + c);
      transform_input(d);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) io.put(to.at + i * to.plane + t * to.tile + c, d[i / 4][i % 4]);
    });
  });
}

template <class V, class T>
void winograd_output(const WinogradMap& m, int64_t first, int64_t count, const WinogradPlanes& from,
                     const WinogradEnd& end) {
  each_tile<V, T, 2>(m, first, count, static_cast<T*>(nullptr), [&](int64_t t, T* const(&to)[2][2]) {
    each_part<V>(m.C, [&](int64_t c, auto io) {
      Tile<V> d;
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) d[i / 4][i % 4] = io.get(from.at + i * from.plane + t * from.tile + c);
      V y[2][2];
      transform_output(d, y);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        T* p = to[i / 2][i % 2];
        if (!p) continue;
        V x = y[i / 2][i % 2];
        if (end.bias) x += io.get(end.bias + c);
        if (end.relu) x = x < V{} ? V{} : x;
        if (end.beta != 0) x += end.beta * io.get(p + c);
        io.put(p + c, x);
      }
    });
  });
}

template <class V, class T>
void winograd_spread(const WinogradMap& m, int64_t first, int64_t count, const WinogradPlanes& to,
                     int64_t lanes) {
  T* zeros = static_cast<T*>(m.zeros);
  each_tile<V, T, 2>(m, first, count, zeros, [&](int64_t t, T* const(&from)[2][2]) {
    each_part<V>(m.C, [&](int64_t c, auto io) {
      const V y[2][2] = {{io.get(from[0][0] + c), io.get(from[0][1] + c)},
                         {io.get(from[1][0] + c), io.get(from[1][1] + c)}};
      Tile<V> d;
      spread_output(y, d);
      float* at = to.at + (c / lanes * count + t) * lanes + c % lanes;
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) io.put(at + i * to.plane, d[i / 4][i % 4]);
    });
  });
}

template <class V>
void winograd_filters(const float* g, int64_t step, int64_t n, bool rotated, const WinogradPlanes& to) {
  each_part<V>(n, [&](int64_t c, auto io) {
    V taps[3][3];
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) taps[i / 3][i % 3] = io.get(g + (rotated ? 8 - i : i) * step + c);
    Tile<V> u;
    transform_filter(taps, u);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) io.put(to.at + i * to.plane + c, u[i / 4][i % 4]);
  });
}

template <class V>
void winograd_gather(const WinogradPlanes& from, int64_t n, float* to) {
  each_part<V>(n, [&](int64_t c, auto io) {
    Tile<V> u;
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) u[i / 4][i % 4] = io.get(from.at + i * from.plane + c);
    V g[3][3];
    gather_filter(u, g);
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) io.put(to + i * n + c, g[i / 3][i % 3]);
  });
}

template <class V>
constexpr WinogradKernels winograd_kernels() {
  return {{winograd_input<V, float>, winograd_input<V, bf16>, winograd_input<V, f16>},
          {winograd_output<V, float>, winograd_output<V, bf16>, winograd_output<V, f16>},
          {winograd_spread<V, float>, winograd_spread<V, bf16>, winograd_spread<V, f16>},
          winograd_filters<V>,
          winograd_gather<V>};
}

}  // namespace skein::cpu
