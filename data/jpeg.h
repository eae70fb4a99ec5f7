// JPEG through libjpeg-turbo.
#pragma once
#include "data/picture.h"

namespace skein::data {

bool is_jpeg(const uint8_t* file, size_t bytes);

// Decodes what `view` shows, no more, reduced by 2, 4 or 8 in the transform where at least `out` remains. Grey
// becomes RGB, as do CMYK and YCCK (inverted if from Adobe's programs). EXIF orientation is not applied. False: the
// file is damaged or ends early, wherever the damage is relative to the view as far as headers tell.
[[nodiscard]] bool decode_jpeg(const uint8_t* file, size_t bytes, const View& view, const ImageSize& out,
                               Picture& picture);

}  // namespace skein::data
