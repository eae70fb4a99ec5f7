// Calls of the CUDA runtime that only this folder needs, besides those of the seam, without its
// headers. Defined in runtime.cu.
#pragma once
#include "engine/device/device.h"
#include "engine/device/device_trouble.h"
#include "engine/seam.h"

namespace skein::cuda {

std::string libraries();         // opens cuDNN and cuBLASLt: "cuDNN 9.19.0, cuBLASLt 13.1.0"; handles.cc
int64_t cache_bytes(int index);  // size of the cache that all multiprocessors share
void make_current(int index);    // for the calling thread

}  // namespace skein::cuda
