// How Winograd's passes see an image, and how many of its tiles they take at once.
#pragma once
#include <algorithm>

#include "engine/cpu/kernels.h"
#include "engine/tensor.h"

namespace skein::cpu {

inline constexpr int64_t kSkew = 16;  // floats between planes, so that the 16 do not share a cache set

// The tiles for a result of P x Q pixels; `zeros` are C elements for what lies outside, if it is read.
inline WinogradMap map_of(const Tensor& images, int64_t padding, int64_t P, int64_t Q, const Tensor& zeros) {
  return {.images = images.raw(),
          .zeros = zeros ? zeros.raw() : nullptr,
          .H = images.dim(1),
          .W = images.dim(2),
          .C = images.dim(3),
          .padding = padding,
          .high = (P + 1) / 2,
          .wide = (Q + 1) / 2};
}

// The transformed tiles fill most of a second-level cache.
inline int64_t tiles_at_once(int64_t channels_in_and_out) {
  return std::clamp<int64_t>((96 << 10) / (16 * channels_in_and_out), 48, 96);
}

}  // namespace skein::cpu
