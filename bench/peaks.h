// Measures this machine's peaks: multiply-adds per second and bytes per second.
#pragma once
#include <algorithm>
#include <vector>

#include "bench/stopwatch.h"
#include "engine/cpu/simd.h"

namespace skein::bench {

// One core's f32 multiply-adds on 8 lanes, both halves counted, in GFLOP/s: 12 chains hide the latency.
inline double fma_gflops() {
  using cpu::V8;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    V8 sum[12];
    for (int j = 0; j < 12; ++j) sum[j] = cpu::splat<V8>(float(j));
    V8 a = cpu::splat<V8>(0.999f), b = cpu::splat<V8>(1e-3f);
    const int n = 2000000;
    const double from = cpu_seconds();
    for (int i = 0; i < n; ++i) {
      asm volatile("" : "+x"(a), "+x"(b));
#pragma GCC unroll 12
      for (int j = 0; j < 12; ++j) sum[j] = sum[j] * a + b;
    }
    const double seconds = cpu_seconds() - from;
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) asm volatile("" : : "x"(sum[j]));
    best = std::max(best, n * 12. * 16 / seconds / 1e9);
  }
  return best;
}

// The rate of copying 256 MB with the current number of threads, counting read and written bytes, in
// GB/s of wall time.
inline double copy_gbytes() {
  const size_t n = size_t(1) << 25;
  std::vector<float> a(n, 1.f), b(n, 2.f);
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double from = wall_seconds();
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < n; ++i) b[i] = a[i];
    best = std::max(best, 8. * double(n) / (wall_seconds() - from) / 1e9);
  }
  return best;
}

}  // namespace skein::bench
