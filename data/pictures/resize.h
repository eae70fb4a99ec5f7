// Resampling of 8-bit images with a triangle filter as wide as the reduction, as Pillow's BILINEAR does.
#pragma once
#include "data/source.h"

namespace skein::data {

// A view on HWC pixels, with rows `stride` bytes apart.
struct Pixels {
  const uint8_t* at = nullptr;
  int height = 0, width = 0, channels = 0;
  int64_t stride = 0;
};

// A rectangle in pixels, which need not lie on pixel borders.
struct Box {
  double top = 0, left = 0, height = 0, width = 0;
  bool operator==(const Box&) const = default;
};

// Draws `box` of `from` into out.height x out.width x from.channels bytes, mirrored left to right if asked.
// The filter may reach beyond the box but not beyond `from`.
void resize(const Pixels& from, const Box& box, bool mirror, const ImageSize& out, uint8_t* to);

}  // namespace skein::data
