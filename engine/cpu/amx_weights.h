// Weight gradients of bf16 images by AMX.
#pragma once
#include "engine/cpu/direct_conv.h"

namespace skein::cpu {

bool amx_fits_weights(const ConvArgs&);
void amx_backward_weights(const ConvArgs&);  // where it fits

}  // namespace skein::cpu
