// How convolutions are cut: blocks of rows that a cache holds and, for data gradients, pixels that see
// the same taps.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "engine/backend.h"
#include "engine/cpu/kernels.h"

namespace skein::cpu {

inline constexpr int64_t kLeastPixels = 48;  // fewer would read the weights too often

inline int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
inline int64_t up_to_multiple(int64_t n, int64_t of) { return (n + of - 1) / of * of; }

// The unit of work: some rows of an image, or some images; few enough that their windows stay in the cache.
struct Blocks {
  int64_t images, rows, at_once, rows_at_once;
  Blocks(int64_t all_images, int64_t all_rows, int64_t columns, int64_t cells_per_pixel, int64_t multiple)
      : images(all_images), rows(all_rows) {
    // A third of a second-level cache of 512 kB, half of one of 1 MB, which processors with AVX-512 have.
    const int64_t cells = kernels().width > 8 ? 128 << 10 : 40 << 10,
                  most_pixels = kernels().width > 8 ? 384 : 256;
    const int64_t pixels =
        std::clamp(cells / std::max<int64_t>(cells_per_pixel, 1), kLeastPixels, most_pixels);
    const int64_t most = std::clamp<int64_t>((pixels + columns / 2) / columns, 1, rows);
    rows_at_once = even_share(rows, most);
    rows_at_once = (rows_at_once + multiple - 1) / multiple * multiple;
    at_once = rows_at_once < rows
                  ? 1
                  : even_share(images, std::clamp<int64_t>(pixels / (rows * columns), 1, images));
  }
  static int64_t even_share(int64_t n, int64_t most) {
    const int64_t blocks = (n + most - 1) / most;
    return (n + blocks - 1) / blocks;
  }
  int64_t per_image() const { return (rows + rows_at_once - 1) / rows_at_once; }
  int64_t count() const { return (images + at_once - 1) / at_once * per_image(); }
};
struct Block {
  int64_t image, last_image, first, last;  // images and rows of each
  Block(const Blocks& b, int64_t i)
      : image(i / b.per_image() * b.at_once),
        last_image(std::min(image + b.at_once, b.images)),
        first(i % b.per_image() * b.rows_at_once),
        last(std::min(first + b.rows_at_once, b.rows)) {}
};

// Pixels of the input whose (position + padding) mod stride is (h, w): they see the same taps of the window.
struct Class {
  int64_t h, w;
  int64_t before;  // taps of the classes before it
  std::vector<std::array<int64_t, 2>> taps;
};

inline std::vector<Class> classes_of(const ConvArgs& c) {
  const auto& g = c.geometry;
  std::vector<Class> all;
  int64_t before = 0;
  for (int64_t h = 0; h < g.stride; ++h)
    for (int64_t w = 0; w < g.stride; ++w) {
      Class k{h, w, before, {}};
      for (int64_t r = 0; r < c.w.dim(1); ++r)
        for (int64_t s = 0; s < c.w.dim(2); ++s)
          if (r * g.dilation % g.stride == h && s * g.dilation % g.stride == w) k.taps.push_back({r, s});
      before += int64_t(k.taps.size());
      all.push_back(std::move(k));
    }
  return all;
}

// Positions p in [from, to) with (p + padding) mod stride equal to `rest`: the first, and how many there are.
struct EveryStride {
  int64_t first, count;
  EveryStride(int64_t from, int64_t to, int64_t rest, const ConvGeometry& g) {
    first = from + ((rest - from - g.padding) % g.stride + g.stride) % g.stride;
    count = first < to ? (to - first + g.stride - 1) / g.stride : 0;
  }
};

}  // namespace skein::cpu
