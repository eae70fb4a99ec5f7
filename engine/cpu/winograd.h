// 3x3 convolutions of stride 1 by Winograd's F(2x2, 3x3) (Lavin & Gray 2016): 16 products instead of 36.
#pragma once
#include "engine/backend.h"

namespace skein::cpu {

// Whether the three below can do it: 3x3, stride 1, no dilation, no groups, channels in eights.
bool winograd_fits(const ConvArgs&);

// Contracts of backend.h. The transforms' factors are 1 and 1/2, so errors stay near those of a plain sum.
void winograd_forward(const ConvArgs&);
void winograd_backward_data(const ConvArgs&);
void winograd_backward_weights(const ConvArgs&);

}  // namespace skein::cpu
