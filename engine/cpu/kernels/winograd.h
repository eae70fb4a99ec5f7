// The transforms of F(n x n, 3x3), n = 2 or 4, for as many channels at once as a vector holds.
//
//   V = B'dB of a tile of (n+2) x (n+2) pixels,  U = GgG' of a 3x3 filter,
//   Y = A'(sum over channels of U V)A, n x n pixels
#pragma once
#include "engine/cpu/kernels.h"
#include "engine/cpu/kernels/part.h"

namespace skein::cpu {

// The 1-d transforms of F(n, 3), V = B'd, U = Gg, Y = A'm, and the transposes of the last two.
template <int n>
struct Toom;

template <>
struct Toom<2> {  // interpolates at 0, 1, -1 and infinity
  template <class V>
  [[gnu::always_inline]] static void input(const V (&d)[4], V (&v)[4]) {
    v[0] = d[0] - d[2], v[1] = d[1] + d[2], v[2] = d[2] - d[1], v[3] = d[1] - d[3];
  }
  template <class V>
  [[gnu::always_inline]] static void filter(const V (&g)[3], V (&u)[4]) {
    const V even = 0.5f * (g[0] + g[2]), odd = 0.5f * g[1];
    u[0] = g[0], u[1] = even + odd, u[2] = even - odd, u[3] = g[2];
  }
  template <class V>
  [[gnu::always_inline]] static void output(const V (&m)[4], V (&y)[2]) {
    y[0] = m[0] + m[1] + m[2], y[1] = m[1] - m[2] - m[3];
  }
  template <class V>
  [[gnu::always_inline]] static void spread(const V (&y)[2], V (&m)[4]) {
    m[0] = y[0], m[1] = y[0] + y[1], m[2] = y[0] - y[1], m[3] = -y[1];
  }
  template <class V>
  [[gnu::always_inline]] static void gather(const V (&u)[4], V (&g)[3]) {
    const V even = 0.5f * (u[1] + u[2]);
    g[0] = u[0] + even, g[1] = 0.5f * (u[1] - u[2]), g[2] = even + u[3];
  }
};

// Interpolates at 0, +-a, +-b and infinity. With 3/4 and 3/2 errors are half those of the usual 1 and 2, and
// 2.7 times those of Toom<2> (256 channels, root mean square).
template <>
struct Toom<4> {
  static constexpr float a = 0.75f, b = 1.5f, A = a * a, B = b * b;
  static constexpr float k0 = 1 / (A * B), ka = 1 / (2 * A * (A - B)), kb = 1 / (2 * B * (B - A));

  template <class V>
  [[gnu::always_inline]] static void input(const V (&d)[6], V (&v)[6]) {
    const V even_a = d[4] - B * d[2], odd_a = d[3] - B * d[1], even_b = d[4] - A * d[2],
            odd_b = d[3] - A * d[1];
    v[0] = A * B * d[0] - (A + B) * d[2] + d[4];
    v[1] = even_a + a * odd_a, v[2] = even_a - a * odd_a;
    v[3] = even_b + b * odd_b, v[4] = even_b - b * odd_b;
    v[5] = A * B * d[1] - (A + B) * d[3] + d[5];
  }
  template <class V>
  [[gnu::always_inline]] static void filter(const V (&g)[3], V (&u)[6]) {
    const V even_a = ka * (g[0] + A * g[2]), odd_a = ka * a * g[1];
    const V even_b = kb * (g[0] + B * g[2]), odd_b = kb * b * g[1];
    u[0] = k0 * g[0];
    u[1] = even_a + odd_a, u[2] = even_a - odd_a;
    u[3] = even_b + odd_b, u[4] = even_b - odd_b;
    u[5] = g[2];
  }
  template <class V>
  [[gnu::always_inline]] static void output(const V (&m)[6], V (&y)[4]) {
    const V even_a = m[1] + m[2], odd_a = a * (m[1] - m[2]), even_b = m[3] + m[4], odd_b = b * (m[3] - m[4]);
    y[0] = m[0] + even_a + even_b;
    y[1] = odd_a + odd_b;
    y[2] = A * even_a + B * even_b;
    y[3] = A * odd_a + B * odd_b + m[5];
  }
  template <class V>
  [[gnu::always_inline]] static void spread(const V (&y)[4], V (&m)[6]) {
    const V even_a = y[0] + A * y[2], odd_a = a * (y[1] + A * y[3]);
    const V even_b = y[0] + B * y[2], odd_b = b * (y[1] + B * y[3]);
    m[0] = y[0];
    m[1] = even_a + odd_a, m[2] = even_a - odd_a;
    m[3] = even_b + odd_b, m[4] = even_b - odd_b;
    m[5] = y[3];
  }
  template <class V>
  [[gnu::always_inline]] static void gather(const V (&u)[6], V (&g)[3]) {
    const V even_a = ka * (u[1] + u[2]), odd_a = ka * (u[1] - u[2]);
    const V even_b = kb * (u[3] + u[4]), odd_b = kb * (u[3] - u[4]);
    g[0] = k0 * u[0] + even_a + even_b;
    g[1] = a * odd_a + b * odd_b;
    g[2] = A * even_a + B * even_b + u[5];
  }
};

// The 2-d transform of a 1-d one: f of every column, then of every row.
template <int kFrom, int kTo, class V, class F>
[[gnu::always_inline]] inline void both_ways(const V (&from)[kFrom][kFrom], V (&to)[kTo][kTo], const F& f) {
  V half[kTo][kFrom];
#pragma GCC unroll 6
  for (int s = 0; s < kFrom; ++s) {
    V column[kFrom], result[kTo];
#pragma GCC unroll 6
    for (int r = 0; r < kFrom; ++r) column[r] = from[r][s];
    f(column, result);
#pragma GCC unroll 6
    for (int r = 0; r < kTo; ++r) half[r][s] = result[r];
  }
#pragma GCC unroll 6
  for (int r = 0; r < kTo; ++r) f(half[r], to[r]);
}

// Calls f(t, from) for the tiles first to first + count, with the addresses of their kSide x kSide pixels.
// Tiles begin n pixels apart.
template <int n, int kSide, class T, class F>
inline void each_tile(const WinogradMap& m, int64_t first, int64_t count, T* outside, const F& f) {
  for (int64_t t = 0; t < count; ++t) {
    const int64_t at = (first + t) % m.per_image();
    T* image = static_cast<T*>(m.images) + (first + t) / m.per_image() * m.H * m.W * m.C;
    T* pixel[kSide][kSide];
    for (int r = 0; r < kSide; ++r)
      for (int s = 0; s < kSide; ++s) {
        const int64_t h = at / m.wide * n - m.padding + r, w = at % m.wide * n - m.padding + s;
        const bool inside = h >= 0 && h < m.H && w >= 0 && w < m.W;
        pixel[r][s] = inside ? image + (h * m.W + w) * m.C : outside;
      }
    f(t, pixel);
  }
}

// The channels from c on of a tile's pixels, and of its transform.
template <int kSide, class V, class T, class Io>
[[gnu::always_inline]] inline void get_pixels(T* const (&from)[kSide][kSide], int64_t c, Io io,
                                              V (&x)[kSide][kSide]) {
#pragma GCC unroll 36
  for (int i = 0; i < kSide * kSide; ++i) x[i / kSide][i % kSide] = io.get(from[i / kSide][i % kSide] + c);
}
template <int kSide, class V, class Io>
[[gnu::always_inline]] inline void get_planes(const float* from, int64_t plane, Io io, V (&x)[kSide][kSide]) {
#pragma GCC unroll 36
  for (int i = 0; i < kSide * kSide; ++i) x[i / kSide][i % kSide] = io.get(from + i * plane);
}
template <int kSide, class V, class Io>
[[gnu::always_inline]] inline void put_planes(float* to, int64_t plane, Io io, const V (&x)[kSide][kSide]) {
#pragma GCC unroll 36
  for (int i = 0; i < kSide * kSide; ++i) io.put(to + i * plane, x[i / kSide][i % kSide]);
}

template <int n, class V, class T>
void winograd_input(const WinogradMap& m, int64_t first, int64_t count, const WinogradPlanes& to) {
  constexpr int kSide = n + 2;
  each_tile<n, kSide>(m, first, count, static_cast<T*>(m.zeros),
                      [&](int64_t t, T* const(&from)[kSide][kSide]) {
                        each_part<V>(m.C, [&](int64_t c, auto io) {
                          V d[kSide][kSide], v[kSide][kSide];
                          get_pixels(from, c, io, d);
                          both_ways(d, v, [](const auto& x, auto& y) { Toom<n>::input(x, y); });
                          put_planes(to.at + t * to.tile + c, to.plane, io, v);
                        });
                      });
}

template <int n, class V, class T>
void winograd_output(const WinogradMap& m, int64_t first, int64_t count, const WinogradPlanes& from,
                     const WinogradEnd& end) {
  each_tile<n, n>(m, first, count, static_cast<T*>(nullptr), [&](int64_t t, T* const(&to)[n][n]) {
    each_part<V>(m.C, [&](int64_t c, auto io) {
      V d[n + 2][n + 2], y[n][n];
      get_planes(from.at + t * from.tile + c, from.plane, io, d);
      both_ways(d, y, [](const auto& a, auto& b) { Toom<n>::output(a, b); });
      V sum{}, squares{};
#pragma GCC unroll 16
      for (int i = 0; i < n * n; ++i) {
        T* p = to[i / n][i % n];
        if (!p) continue;
        V x = y[i / n][i % n];
        if (end.bias) x += io.get(end.bias + c);
        if (end.relu) x = x < V{} ? V{} : x;
        if (end.beta != 0) x += end.beta * io.get(p + c);
        io.put(p + c, x);
        if (end.sums) sum += x, squares += x * x;
      }
      if (!end.sums) return;
      float *s = end.sums + c, *q = s + m.C;
      io.put(s, io.get(s) + sum), io.put(q, io.get(q) + squares);
    });
  });
}

template <int n, class V, class T>
void winograd_spread(const WinogradMap& m, int64_t first, int64_t count, const WinogradPlanes& to,
                     int64_t lanes) {
  each_tile<n, n>(m, first, count, static_cast<T*>(m.zeros), [&](int64_t t, T* const(&from)[n][n]) {
    each_part<V>(m.C, [&](int64_t c, auto io) {
      V y[n][n], d[n + 2][n + 2];
      get_pixels(from, c, io, y);
      both_ways(y, d, [](const auto& a, auto& b) { Toom<n>::spread(a, b); });
      put_planes(to.at + (c / lanes * count + t) * lanes + c % lanes, to.plane, io, d);
    });
  });
}

template <int n, class V>
void winograd_filters(const float* g, int64_t step, int64_t count, bool rotated, const WinogradPlanes& to) {
  each_part<V>(count, [&](int64_t c, auto io) {
    V taps[3][3], u[n + 2][n + 2];
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) taps[i / 3][i % 3] = io.get(g + (rotated ? 8 - i : i) * step + c);
    both_ways(taps, u, [](const auto& a, auto& b) { Toom<n>::filter(a, b); });
    put_planes(to.at + c, to.plane, io, u);
  });
}

template <int n, class V>
void winograd_gather(const WinogradPlanes& from, int64_t count, float* to) {
  each_part<V>(count, [&](int64_t c, auto io) {
    V u[n + 2][n + 2], g[3][3];
    get_planes(from.at + c, from.plane, io, u);
    both_ways(u, g, [](const auto& a, auto& b) { Toom<n>::gather(a, b); });
    put_planes(to + c, count, io, g);
  });
}

template <int n, class V>
constexpr WinogradKernels winograd_kernels() {
  return {n,
          (n + 2) * (n + 2),
          {winograd_input<n, V, float>, winograd_input<n, V, bf16>, winograd_input<n, V, f16>},
          {winograd_output<n, V, float>, winograd_output<n, V, bf16>, winograd_output<n, V, f16>},
          {winograd_spread<n, V, float>, winograd_spread<n, V, bf16>, winograd_spread<n, V, f16>},
          winograd_filters<n, V>,
          winograd_gather<n, V>};
}

}  // namespace skein::cpu
