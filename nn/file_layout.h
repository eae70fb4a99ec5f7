// Converts parameters between our layout (OHWI, rows over H W C) and torchvision's (OIHW, rows over C H W).
#pragma once
#include "nn/module.h"

namespace skein::nn {

// The shape `p` has in a torchvision file.
Shape file_shape(const Param& p);
// Converts `ours`, a tensor of p's shape (its value, its gradient, a momentum), to a new tensor of
// file_shape on the CPU.
Tensor to_file(const Param& p, const Tensor& ours);
// The reverse: writes `file` (f32, on the CPU, of file_shape) into `ours` on its device.
void from_file(const Param& p, const Tensor& file, const Tensor& ours);

}  // namespace skein::nn
