// JPEG through libjpeg-turbo.
#pragma once
#include "data/pictures/picture.h"

namespace skein::data {

bool is_jpeg(const uint8_t* file, size_t bytes);

// Decodes what the View shows and little more, reduced by 2, 4 or 8 in the transform if at least `out`
// remains. Gray becomes RGB, as do CMYK and YCCK (inverted if Adobe's programs wrote them). EXIF
// orientation is not applied. Returns false if the file ends early or is damaged above the View's
// bottom; Picture::odd says which.
[[nodiscard]] bool decode_jpeg(const uint8_t* file, size_t bytes, const View&, const ImageSize& out,
                               Picture&);

}  // namespace skein::data
