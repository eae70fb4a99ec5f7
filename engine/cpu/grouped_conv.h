// Grouped convolutions with as many outputs as channels in a group, as ResNeXt and RegNet have them.
#pragma once
#include "engine/backend.h"

namespace skein::cpu {

// Whether the three below take a shape: groups of whole vectors or of 2, 4 or 8 channels.
bool grouped_fits(const ConvArgs& c);

// Contracts of backend.h.
void grouped_forward(const ConvArgs&);
void grouped_backward_data(const ConvArgs&);
void grouped_backward_weights(const ConvArgs&);

}  // namespace skein::cpu
