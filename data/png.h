// PNG through libpng.
#pragma once
#include "data/picture.h"

namespace skein::data {

bool is_png(const uint8_t* file, size_t bytes);

// Decodes the whole image to 8-bit RGB (16 bits rounded, palettes and grey expanded, transparency dropped, as
// torchvision's loader does). False: the file is damaged or ends early; Picture::odd says which.
[[nodiscard]] bool decode_png(const uint8_t* file, size_t bytes, const View&, const ImageSize& out, Picture&);

}  // namespace skein::data
