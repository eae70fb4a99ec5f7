#include "engine/loops/host.h"

#include <omp.h>

namespace skein {

void in_blocks(int64_t rows, int64_t cols, void (*run)(const void* loop, Block), const void* loop) {
  if (rows * cols < kParallelFrom) return run(loop, {0, rows, 0, cols});
#pragma omp parallel
  {
    const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    const auto share = [&](int64_t n) { return n * me / threads; };
    const auto end = [&](int64_t n) { return n * (me + 1) / threads; };
    run(loop, rows == 1 ? Block{0, 1, share(cols), end(cols)} : Block{share(rows), end(rows), 0, cols});
  }
}

}  // namespace skein
