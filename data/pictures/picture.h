// Picture: the result of an image decoder, the part of an image that a View shows.
#pragma once
#include <vector>

#include "data/odd.h"
#include "data/pictures/view.h"

namespace skein::data {

// RGB pixels. `box` is the View's box in these pixels; a decoder may have reduced the image.
struct Picture {
  std::vector<uint8_t> bytes;
  int height = 0, width = 0;
  Box box;
  OddSet odd = 0;  // what the decoder converted, or why it failed
  Pixels pixels() const { return {bytes.data(), height, width, 3, int64_t(width) * 3}; }
};

// Draws the picture as the View specifies.
void draw(const View&, const Picture&, const ImageSize& out, uint8_t* to);

// A small file can claim to be larger than memory. A picture of more pixels is refused, and one whose file or
// whose decoding takes more bytes.
inline constexpr int64_t kMostPixels = int64_t(1) << 28, kMostPictureBytes = int64_t(1) << 29;
inline constexpr size_t kKeptBytes = size_t(1) << 26;  // a larger buffer is not kept for the next picture

}  // namespace skein::data
