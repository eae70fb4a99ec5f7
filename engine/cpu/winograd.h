// 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3) (Lavin & Gray 2016), 36 products instead of 144, and
// where images are so small that tiles of 4x4 would do more, by F(2x2, 3x3), 16 instead of 36.
#pragma once
#include "engine/backend.h"

namespace skein::cpu {

// Whether the three below can do it: 3x3, stride 1, padding <= 2, no dilation, no groups, channels in eights.
bool winograd_fits(const ConvArgs&);

// Contracts of backend.h. All is computed in f32. Errors are near those of a plain sum: of sums over 256
// channels 1.2e-6 of the result (root mean square) with tiles of 4x4, 0.5e-6 with 2x2.
void winograd_forward(const ConvArgs&);
void winograd_backward_data(const ConvArgs&);
void winograd_backward_weights(const ConvArgs&);

}  // namespace skein::cpu
