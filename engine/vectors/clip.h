// Clips a vector by its norm, without making the host wait.
#pragma once
#include "engine/tensor.h"

namespace skein {

// g <- g * min(1, most / (|g| + 1e-6)), |g| the Euclidean norm of all of g; as
// torch.nn.utils.clip_grad_norm_. f32. The order of the sums depends on the size alone. A NaN stays a NaN.
void clip_by_norm(const Tensor& g, double most);

}  // namespace skein
