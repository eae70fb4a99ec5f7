// Clipping a vector by its norm, without the host's waiting for it.
#pragma once
#include "engine/tensor.h"

namespace skein {

// g <- g * min(1, most / (|g| + 1e-6)), |g| the Euclidean norm of all of g; as
// torch.nn.utils.clip_grad_norm_. f32. Sums are made in an order that depends on the size alone. What is no
// number stays none.
void clip_by_norm(const Tensor& g, double most);

}  // namespace skein
