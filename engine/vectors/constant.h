// Numbers that kernels read and nobody writes: on a device once, for as long as the program runs.
#pragma once
#include <vector>

#include "engine/tensor.h"

namespace skein {

// f32 [n] with these values. The first call for a device uploads them and waits; any thread may read the
// result on any stream. For settings, of which there are few, never for data: nothing is given back.
Tensor constant(const std::vector<float>& values, Device);

}  // namespace skein
