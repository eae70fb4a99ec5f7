// How a loop over elements or rows runs on the host. Every kernel compiles its own copy of what is a template
// here, so that is one plain loop; how a team shares the work is compiled once.
#pragma once
#include "engine/loops/shares.h"

namespace skein {

// Loops shorter than this run on the calling thread: waking a team costs about this much work.
inline constexpr int64_t kParallelFrom = 1 << 14;

// The rows [row, last_row) and columns [col, last_col) of a loop.
struct Block {
  int64_t row, last_row, col, last_col;
};

// Calls run(loop, block) for blocks that make up rows x cols: for all of it, or for each thread's share.
void in_blocks(int64_t rows, int64_t cols, void (*run)(const void* loop, Block), const void* loop);

// Each thread has its own copy of the functor: through a pointer, every store might change its members.
template <class F>
void run_elements(const void* loop, Block b) {
  const F f = *static_cast<const F*>(loop);
#pragma omp simd
  for (int64_t i = b.col; i < b.last_col; ++i) f(i);
}
template <class F>
void run_rows(const void* loop, Block b) {
  const F f = *static_cast<const F*>(loop);
  for (int64_t r = b.row; r < b.last_row; ++r) {
    const auto g = f.row(r);
#pragma omp simd
    for (int64_t c = b.col; c < b.last_col; ++c) g(c);
  }
}

}  // namespace skein
