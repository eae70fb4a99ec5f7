// Color jitter: brightness, contrast and saturation of finished pixels, as torchvision changes them.
#pragma once
#include "data/source.h"

namespace skein::data {

// Changes out.height x out.width x out.channels bytes in place, by the View's factors in the View's
// order. The result is bit for bit that of torchvision's adjust_brightness, adjust_contrast and
// adjust_saturation on a Pillow image. One channel has no saturation; with other numbers of channels than
// three, gray is their mean.
void jitter_colors(const View&, const ImageSize&, uint8_t* pixels);

}  // namespace skein::data
