// How Winograd's passes see an image, and how many of its tiles they take at once.
#pragma once
#include <omp.h>

#include <algorithm>

#include "engine/cpu/ahead.h"
#include "engine/cpu/kernels.h"
#include "engine/tensor.h"

namespace skein::cpu {

inline constexpr int64_t kSkew = 16;  // floats between planes, so that they do not share a cache set

// F(4x4, 3x3) does 36 products for 16 pixels, F(2x2, 3x3) 16 for 4: whichever does fewer for a result of
// P x Q pixels, with tiles that reach over its edge.
inline const WinogradKernels& winograd_for(int64_t P, int64_t Q) {
  const Kernels& all = kernels();
  const auto products = [&](const WinogradKernels& k) {
    return ((P + k.side - 1) / k.side) * ((Q + k.side - 1) / k.side) * k.positions;
  };
  return products(all.winograd_wide) < products(all.winograd) ? all.winograd_wide : all.winograd;
}

// The tiles for a result of P x Q pixels; `zeros` are C elements for what lies outside, if it is read.
inline WinogradMap map_of(const Tensor& images, int64_t side, int64_t padding, int64_t P, int64_t Q,
                          const Tensor& zeros) {
  return {.images = images.raw(),
          .zeros = zeros ? zeros.raw() : nullptr,
          .H = images.dim(1),
          .W = images.dim(2),
          .C = images.dim(3),
          .padding = padding,
          .high = (P + side - 1) / side,
          .wide = (Q + side - 1) / side};
}

// Adds the rows of images at which `count` tiles from `first` on begin, `side` for each. The rows around them
// are those of other tiles too.
inline void fetch_tiles(const WinogradMap& m, const Tensor& images, int64_t side, int64_t first,
                        int64_t count, Ahead& ahead) {
  const int64_t all = images.dim(0) * m.per_image(), rows = images.dim(0) * m.H;
  if (first >= all) return;
  const auto row_of = [&](int64_t t) {
    return t / m.per_image() * m.H + std::min(m.H, t % m.per_image() / m.wide * side);
  };
  const int64_t from = row_of(first), to = std::min(rows, row_of(std::min(first + count, all) - 1) + side);
  ahead.add(images, from * m.W * m.C, (to - from) * m.W * m.C);
}

// How many of `all` tiles are transformed at once: as many as fill most of a second-level cache with `floats`
// each, but at least so many that the transformed filters, or the sums, are read for enough of them; and all
// threads have equally many blocks. Up to twice as many are taken rather than two blocks a thread.
inline int64_t tiles_at_once(int64_t all, int64_t least, int64_t floats) {
  const int64_t fit = std::clamp<int64_t>((96 << 10) / floats, least, 96), threads = omp_get_max_threads();
  const int64_t share = (all + threads - 1) / threads;
  const int64_t blocks = share < 2 * fit ? 1 : (share + fit / 2) / fit;
  return std::max<int64_t>(1, (share + blocks - 1) / blocks);
}

}  // namespace skein::cpu
