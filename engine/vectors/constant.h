// Constants that kernels read: each is uploaded to a device once and stays there until the program ends.
#pragma once
#include <vector>

#include "engine/tensor.h"

namespace skein {

// f32 [n] with these values. The first call for a device uploads them and waits; any thread may read the
// result on any stream. For a few settings, never for data, because the memory is never freed.
Tensor constant(const std::vector<float>& values, Device);

}  // namespace skein
