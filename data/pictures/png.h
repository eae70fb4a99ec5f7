// PNG through libpng.
#pragma once
#include "data/pictures/picture.h"

namespace skein::data {

bool is_png(const uint8_t* file, size_t bytes);

// Decodes the whole image to 8-bit RGB (16 bits rounded, palettes and gray expanded, transparency dropped, as
// torchvision's loader does). Returns false if the file is damaged or ends early; Picture::odd says which.
[[nodiscard]] bool decode_png(const uint8_t* file, size_t bytes, const View&, const ImageSize& out, Picture&);

// Encodes height x width x channels bytes, gray or RGB, as a file.
std::vector<uint8_t> encode_png(const uint8_t* pixels, const ImageSize&);

}  // namespace skein::data
