// Whether a GPU can be used by this program, and what to install where it cannot.
#pragma once
#include "engine/device/device.h"

namespace skein {

// False of a program that computes on CPUs alone.
bool built_with_cuda();
// Why cuda_device_count() is 0 and what to install; empty where there are some.
std::string why_no_cuda();
// Throws Error that says what to install unless there is this GPU, this build has code for it, and cuDNN and
// cuBLASLt open. Of a CPU nothing is required.
void require_usable(Device);
// "NVIDIA H200, compute capability 9.0, driver for CUDA 13.0, cuDNN 9.19.0"; "cpu" of a CPU.
std::string describe(Device);

}  // namespace skein
