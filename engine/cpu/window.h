// A rectangle of one image as dense f32 rows, zero outside the image. The direct kernels read it.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/cpu/simd.h"

namespace skein::cpu {

struct Rectangle {
  int64_t top, bottom, left, right;  // half-open; may leave the image
};

template <class T>
inline void copy_f32(float* to, const T* from, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) store8(to + i, load8(from + i));
  for (; i < n; ++i) to[i] = float(from[i]);
}

// Grows a buffer that a thread keeps from call to call.
inline float* grow(std::vector<float>& v, int64_t n) {
  if (int64_t(v.size()) < n) v.resize(size_t(n));
  return v.data();
}

// Copies r of `image` [H,W,C] to `to` [bottom-top, right-left, C].
template <class T>
void stage(float* to, const T* image, int64_t H, int64_t W, int64_t C, const Rectangle& r) {
  const int64_t width = r.right - r.left, left = std::max<int64_t>(r.left, 0), right = std::min(r.right, W);
  for (int64_t h = r.top; h < r.bottom; ++h, to += width * C) {
    if (h < 0 || h >= H || left >= right) {
      std::memset(to, 0, size_t(width * C) * sizeof(float));
      continue;
    }
    std::memset(to, 0, size_t((left - r.left) * C) * sizeof(float));
    copy_f32(to + (left - r.left) * C, image + (h * W + left) * C, (right - left) * C);
    std::memset(to + (right - r.left) * C, 0, size_t((r.right - right) * C) * sizeof(float));
  }
}

// The rectangle in the image itself if that is f32 and contains all of it, else a copy in `memory`.
struct Window {
  const float* at;
  int64_t row;  // floats from one row to the next
};
template <class T>
Window window_of(std::vector<float>& memory, const T* image, int64_t H, int64_t W, int64_t C,
                 const Rectangle& r) {
  if constexpr (std::is_same_v<T, float>)
    if (r.top >= 0 && r.bottom <= H && r.left >= 0 && r.right <= W)
      return {image + (r.top * W + r.left) * C, W * C};
  const int64_t width = r.right - r.left;
  float* to = grow(memory, (r.bottom - r.top) * width * C + 16);
  stage(to, image, H, W, C, r);
  return {to, width * C};
}

}  // namespace skein::cpu
