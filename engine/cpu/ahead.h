// Ahead: what will be read or written after some products, fetched into the caches while they are computed,
// since the memory has nothing else to do then.
#pragma once
#include <algorithm>
#include <array>
#include <utility>

#include "engine/backend.h"
#include "engine/cpu/kernels.h"
#include "engine/tensor.h"

namespace skein::cpu {

class Ahead {
 public:
  // At most twice.
  void add(const Tensor& t, int64_t from, int64_t elements) {
    const char* first = static_cast<const char*>(t.raw()) + from * size_of(t.dtype());
    spans_[count_++] = {first, first + elements * size_of(t.dtype())};
  }
  // All from row `first` of an image [H,W,C] up to row `last` of the image before `end`, or to its end.
  void add_rows(const Tensor& images, int64_t image, int64_t end, int64_t first, int64_t last) {
    const int64_t H = images.dim(1), row = images.dim(2) * images.dim(3);
    const int64_t from = image * H + std::min(H, first), to = (end - 1) * H + std::min(H, last);
    add(images, from * row, (to - from) * row);
  }
  // Where the lines that are next in turn begin; null if there are none. Some of so many may lie beyond the
  // end, where fetching does no harm.
  const char* take(int64_t lines) {
    for (auto& [next, end] : spans_)
      if (next < end) return std::exchange(next, next + kLineBytes * lines);
    return nullptr;
  }

 private:
  std::array<std::pair<const char*, const char*>, 2> spans_ = {};
  int count_ = 0;
};

// About what rows [first, last) of the results of some images see: rows that two blocks see are counted
// once. Of windows that leave out pixels too much would be fetched.
inline void fetch_seen(const ConvArgs& c, int64_t image, int64_t end, int64_t first, int64_t last,
                       Ahead& ahead) {
  const int64_t stride = c.geometry.stride;
  if (stride <= c.w.dim(1)) ahead.add_rows(c.x, image, end, first * stride, last * stride);
}

}  // namespace skein::cpu
