// Between our layout of a parameter (OHWI, rows over H W C) and torchvision's (OIHW, rows over C H W).
#pragma once
#include "nn/module.h"

namespace skein::nn {

// The shape `p` has in a torchvision file.
Shape file_shape(const Param& p);
// `ours`, a tensor of p's shape (its value, its gradient, a momentum), as a new tensor of
// file_shape on the CPU.
Tensor to_file(const Param& p, const Tensor& ours);
// The reverse, written into `ours` on its device. `file`: f32 on the CPU, of file_shape.
void from_file(const Param& p, const Tensor& file, const Tensor& ours);

}  // namespace skein::nn
