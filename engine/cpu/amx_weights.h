// Weight gradients of bf16 images by AMX.
#pragma once
#include "engine/cpu/direct_conv.h"

namespace skein::cpu {

void amx_backward_weights(const ConvArgs&);  // where amx_fits() (engine/cpu/cells.h)

}  // namespace skein::cpu
