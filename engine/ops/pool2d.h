// What both processors' pooling must be given.
#pragma once
#include "engine/backend.h"

namespace skein {

// Throws Error otherwise. in, out: x, y or dx, dy.
void check_pool(const PoolArgs&, const Tensor& in, const Tensor& out);

}  // namespace skein
