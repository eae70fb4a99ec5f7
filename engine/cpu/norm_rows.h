// How batch norm's passes are divided among threads: into rows of whole vectors, for any number of channels.
#pragma once
#include <omp.h>

#include <numeric>
#include <vector>

#include "engine/cpu/kernels.h"

namespace skein::cpu {

inline constexpr int64_t kParallelElements = 1 << 14;

// Several rows, of at least 64 floats and a whole number of vectors, are treated as one: channel constants
// are repeated, odd channel counts need no special case, and sums do not depend on one another.
struct Period {
  int64_t rows, channels;
  int64_t repeat = least_repeat(channels), width = repeat * channels;

  static int64_t least_repeat(int64_t c) {
    const int64_t lanes = kernels().width, unit = lanes / std::gcd<int64_t>(lanes, c);
    return std::max<int64_t>(1, (64 + unit * c - 1) / (unit * c)) * unit;
  }
  int64_t whole() const { return rows / repeat; }
  int64_t rest() const { return rows % repeat * channels; }  // floats after the last whole period

  template <class Get>  // get(channel)
  std::vector<float> repeated(Get get) const {
    std::vector<float> v(static_cast<size_t>(width));
    for (int64_t c = 0; c < channels; ++c) v[size_t(c)] = float(get(c));
    for (int64_t i = channels; i < width; ++i) v[size_t(i)] = v[size_t(i - channels)];
    return v;
  }
};

// Calls f(thread, rows) for each thread's share of whole periods, and once for the floats after.
// The shares depend on the number of threads alone.
template <class F>
void divide(const Period& p, F f) {
#pragma omp parallel if (p.rows * p.channels > kParallelElements)
  {
    const int64_t n = omp_get_num_threads(), t = omp_get_thread_num();
    f(int(t), NormRows{p.whole() * t / n, p.whole() * (t + 1) / n, p.width, p.width});
    if (t == n - 1 && p.rest()) f(int(t), NormRows{p.whole(), p.whole() + 1, p.width, p.rest()});
  }
}

// Two sums per channel of what add(rows, sums) adds: in f32 over about 64 rows, then in double, in the order
// of the threads. Returns all first sums, then all second ones.
template <class Add>
std::vector<double> two_sums(const Period& p, Add add) {
  const int64_t C = p.channels, W = p.width, block = std::max<int64_t>(1, 64 / p.repeat);
  std::vector<double> total(size_t(2 * C * omp_get_max_threads()));
  divide(p, [&](int thread, const NormRows& share) {
    std::vector<float> sums(size_t(2 * W));
    double* mine = total.data() + 2 * C * thread;
    for (int64_t from = share.first; from < share.last; from += block) {
      std::fill(sums.begin(), sums.end(), 0.f);
      add(NormRows{from, std::min(from + block, share.last), W, share.length}, sums.data());
      for (int64_t r = 0; r < p.repeat; ++r)
        for (int64_t c = 0; c < C; ++c)
          mine[c] += double(sums[size_t(r * C + c)]), mine[C + c] += double(sums[size_t(W + r * C + c)]);
    }
  });
  for (size_t at = size_t(2 * C); at < total.size(); ++at) total[at % size_t(2 * C)] += total[at];
  total.resize(size_t(2 * C));
  return total;
}

}  // namespace skein::cpu
