// Whether this program can use a GPU, and what to install if it cannot.
#pragma once
#include "engine/device/device.h"

namespace skein {

// False if this program was built for CPUs only.
bool built_with_cuda();
// Why cuda_device_count() is 0 and what to install; empty if it is not 0.
std::string why_no_cuda();
// Throws Error that says what to install unless the GPU exists, this build has code for it, and cuDNN and
// cuBLASLt can be opened. A CPU is always usable.
void require_usable(Device);
// "NVIDIA H200, compute capability 9.0, driver for CUDA 13.0, cuDNN 9.19.0"; "cpu" for a CPU.
std::string describe(Device);

}  // namespace skein
