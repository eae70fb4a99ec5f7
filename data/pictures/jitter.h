// Color jitter: brightness, contrast and saturation of finished pixels, as torchvision changes them.
#pragma once
#include "data/source.h"

namespace skein::data {

// In place, out.height x out.width x out.channels bytes, by the View's factors in the View's order. To the
// bit what torchvision's adjust_brightness, adjust_contrast and adjust_saturation make of a Pillow image. One
// channel has no saturation; of other numbers than three, the channels share a gray that is their mean.
void jitter_colors(const View&, const ImageSize&, uint8_t* pixels);

}  // namespace skein::data
