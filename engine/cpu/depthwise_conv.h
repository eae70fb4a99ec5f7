// Depthwise convolutions: each channel of the image is convolved with a window of its own.
#pragma once
#include "engine/backend.h"

namespace skein::cpu {

// Whether a group is one channel on both sides, as the three below need it.
bool is_depthwise(const ConvArgs& c);

// Contracts of backend.h. They compute in f32.
void depthwise_forward(const ConvArgs&);
void depthwise_backward_data(const ConvArgs&);
void depthwise_backward_weights(const ConvArgs&);

}  // namespace skein::cpu
