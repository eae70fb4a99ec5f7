#include "engine/loops/host.h"

namespace skein {

void in_blocks(int64_t rows, int64_t cols, void (*run)(const void* loop, Block), const void* loop) {
  in_shares(rows == 1 ? cols : rows, rows * cols >= kParallelFrom, [=](int64_t from, int64_t to) {
    run(loop, rows == 1 ? Block{0, 1, from, to} : Block{from, to, 0, cols});
  });
}

}  // namespace skein
