// What the files of this folder ask of the CUDA runtime, without its headers, beside the calls of the
// seam. Defined in runtime.cu.
#pragma once
#include "engine/device/device.h"
#include "engine/device/device_trouble.h"
#include "engine/seam.h"

namespace skein::cuda {

std::string libraries();         // opens cuDNN and cuBLASLt: "cuDNN 9.19.0, cuBLASLt 13.1.0"; handles.cc
int64_t cache_bytes(int index);  // of the cache that all its multiprocessors share
void make_current(int index);    // for the calling thread

}  // namespace skein::cuda
