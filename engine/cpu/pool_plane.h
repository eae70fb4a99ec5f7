// One image of a pooling: which windows there are, and which positions they contain.
#pragma once
#include <algorithm>
#include <cstdint>

namespace skein::cpu {

struct Span {
  int64_t first, last;
  bool operator==(const Span&) const = default;
};

struct PoolPlane {
  const void* in;       // forward: an image [H,W,C]; backward: its dy [P,Q,C]
  void* out;            // forward: its result [P,Q,C]; backward: its dx [H,W,C]
  uint8_t* argmax;      // [P,Q,C]: positions in the windows; may be null in forward
  const float* shares;  // averages only: [P,Q], one over how many elements the window has
  int64_t H, W, P, Q, C;
  int size, stride, padding;
  float beta;        // dx <- ... + beta dx
  bool past_caches;  // how `out` is written: pixels are then whole lines

  // The positions of window p that lie inside [0, n).
  Span inside(int64_t p, int64_t n) const {
    const int64_t at = p * stride - padding;
    return {std::max<int64_t>(at, 0), std::min<int64_t>(at + size, n)};
  }
  // Moves on to the windows of [0, count) that contain position i, from those that contain an earlier one.
  void advance(int64_t i, int64_t count, Span& windows) const {
    while (windows.first < count && windows.first * stride - padding + size <= i) ++windows.first;
    while (windows.last < count && windows.last * stride - padding <= i) ++windows.last;
  }
  // What argmax says if row r and column s of the image are the largest of window (p, q).
  uint32_t place(int64_t p, int64_t q, int64_t r, int64_t s) const {
    return uint32_t((r - p * stride + padding) * size + s - q * stride + padding);
  }
};

}  // namespace skein::cpu
