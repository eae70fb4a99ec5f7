// Measures this machine's peaks: multiply-adds per second and bytes per second.
#pragma once
#include <algorithm>
#include <vector>

#include "bench/stopwatch.h"
#include "engine/cpu/kernels.h"

namespace skein::bench {

// One core's multiply-adds in GFLOP/s of processor time, both halves counted, by the widest instructions that
// the program uses: on f32, or on pairs of bf16 where the processor has them.
inline double fma_gflops(DType t) {
  const bool amx = t == kBF16 && cpu::amx_kernels(), pairs = t == kBF16 && (amx || cpu::pair_kernels());
  const cpu::TileKernels& tiles = amx     ? cpu::amx_kernels()->tiles
                                  : pairs ? cpu::pair_kernels()->tiles
                                          : cpu::kernels().tiles;
  const std::vector<cpu::Cell> ones(size_t(tiles.rows + tiles.lanes), pairs ? 0x3F803F80 : 0x3F800000);
  const double flops = (pairs ? 4. : 2.) * tiles.rows * tiles.lanes;
  double best = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    constexpr int64_t kTimes = 400000;
    const double from = cpu_seconds();
    tiles.most(ones.data(), kTimes);
    best = std::max(best, flops * double(kTimes) / (cpu_seconds() - from) / 1e9);
  }
  return best;
}

// A thread's rate while so many copy 128 MB together, counting read and written bytes, in GB/s
// of processor time.
inline double copy_gbytes(int threads) {
  const size_t n = size_t(1) << 25;
  std::vector<float> a(n, 1.f), b(n, 2.f);
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double from = cpu_seconds();
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t) {
      const size_t first = n * size_t(t) / size_t(threads), last = n * size_t(t + 1) / size_t(threads);
      std::copy(a.begin() + ptrdiff_t(first), a.begin() + ptrdiff_t(last), b.begin() + ptrdiff_t(first));
    }
    best = std::max(best, 8. * double(n) / (cpu_seconds() - from) / 1e9);
  }
  return best;
}

}  // namespace skein::bench
