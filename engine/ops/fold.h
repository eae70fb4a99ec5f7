// A batch norm with its running statistics, folded into the convolution before it.
#pragma once
#include "engine/ops.h"

namespace skein {

// Running statistics are an affine map per output channel: w' = w * scale, bias = shift - mean * scale, scale
// = gamma / sqrt(var + epsilon). The results are on w's device.
struct Folded {
  Tensor w;     // like w, of the asked type
  Tensor bias;  // [O] f32
};
Folded fold_norm(const Tensor& w, const NormState&, DType = kF32);

}  // namespace skein
