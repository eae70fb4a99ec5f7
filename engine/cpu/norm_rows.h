// The loops of batch norm over rows of channels, eight floats at a time whatever the number of channels is.
#pragma once
#include <omp.h>

#include <numeric>
#include <vector>

#include "engine/cpu/simd.h"

namespace skein::cpu {

inline constexpr int64_t kParallelElements = 1 << 14;

// As many rows as make a run of whole vectors, at least 64 floats, are treated as one: channel constants are
// repeated, odd channel counts need no special case and sums do not wait for one another.
struct Period {
  int64_t rows, channels;
  int64_t repeat = least_repeat(channels), width = repeat * channels;

  static int64_t least_repeat(int64_t c) {
    const int64_t unit = 8 / std::gcd<int64_t>(8, c);
    return std::max<int64_t>(1, (64 + unit * c - 1) / (unit * c)) * unit;
  }
  int64_t whole() const { return rows / repeat; }
  int64_t rest() const { return rows % repeat * channels; }  // floats after the last whole period

  template <class Get>  // get(channel)
  std::vector<float> repeated(Get get) const {
    std::vector<float> v(static_cast<size_t>(width));
    for (int64_t i = 0; i < width; ++i) v[size_t(i)] = float(get(i % channels));
    return v;
  }
};

// Loads up to eight values; missing ones are taken from `fill`.
template <class T>
inline V8 load_some(const T* p, int64_t n, V8 fill) {
  if (n >= 8) return load8(p);
  for (int64_t i = 0; i < n; ++i) fill[i] = float(p[i]);
  return fill;
}
template <class T>
inline void store_some(T* p, int64_t n, V8 v) {
  if (n >= 8) return store8(p, v);
  for (int64_t i = 0; i < n; ++i) p[i] = T(v[i]);
}

// Calls f(first, last) for each thread's share of whole periods, and rest(thread) once, for the floats after.
// The shares depend on the number of threads alone.
template <class F, class Rest>
void divide(const Period& p, F f, Rest rest) {
#pragma omp parallel if (p.rows * p.channels > kParallelElements)
  {
    const int64_t n = omp_get_num_threads(), t = omp_get_thread_num();
    f(int(t), p.whole() * t / n, p.whole() * (t + 1) / n);
    if (t == n - 1 && p.rest()) rest(int(t));
  }
}

// Calls step(at, lane, n) for each vector at element `at`, with channel constants at `lane`. It runs
// backwards, because what was read last is still in cache.
template <class Step>
void each_vector(const Period& p, Step step) {
  divide(
      p,
      [&](int, int64_t first, int64_t last) {
        for (int64_t i = last; i-- > first;)
          for (int64_t j = 0; j < p.width; j += 8) step(i * p.width + j, j, int64_t(8));
      },
      [&](int) {
        for (int64_t j = 0; j < p.rest(); j += 8)
          step(p.whole() * p.width + j, j, std::min<int64_t>(8, p.rest() - j));
      });
}

// Two sums for each channel of what step(at, lane, n, sum, other) adds: in f32 over some 64 rows, then in
// double, threads in order. Returns all first sums, then all second ones.
template <class Step>
std::vector<double> two_sums(const Period& p, Step step) {
  const int64_t C = p.channels, W = p.width, block = std::max<int64_t>(1, 64 / p.repeat);
  std::vector<double> total(size_t(2 * C * omp_get_max_threads()));
  const auto run = [&](int thread, int64_t first, int64_t last, int64_t length) {
    std::vector<float> sums(size_t(2 * W));
    float *a = sums.data(), *b = a + W;
    double* mine = total.data() + 2 * C * thread;
    for (int64_t from = first; from < last; from += block) {
      std::fill(sums.begin(), sums.end(), 0.f);
      for (int64_t i = from; i < std::min(from + block, last); ++i)
        for (int64_t j = 0; j < length; j += 8) {
          V8 s = load8(a + j), t = load8(b + j);
          step(i * W + j, j, std::min<int64_t>(8, length - j), s, t);
          store8(a + j, s), store8(b + j, t);
        }
      for (int64_t r = 0; r < p.repeat; ++r)
        for (int64_t c = 0; c < C; ++c) mine[c] += double(a[r * C + c]), mine[C + c] += double(b[r * C + c]);
    }
  };
  divide(
      p, [&](int thread, int64_t first, int64_t last) { run(thread, first, last, W); },
      [&](int thread) { run(thread, p.whole(), p.whole() + 1, p.rest()); });
  for (size_t at = size_t(2 * C); at < total.size(); ++at) total[at % size_t(2 * C)] += total[at];
  total.resize(size_t(2 * C));
  return total;
}

}  // namespace skein::cpu
