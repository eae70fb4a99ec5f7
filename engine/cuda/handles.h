// What cuDNN and cuBLASLt calls need besides their arguments: handles, streams, workspace.
#pragma once
#include "engine/tensor.h"

struct cudnnContext;
struct cublasLtContext;

namespace skein::cuda {

// This thread's handle for the device, set to its current stream. It is made on first use.
cudnnContext* cudnn_handle(Device);
// The process's handle for the device; any thread may use it.
cublasLtContext* cublas_handle(Device);
// At least `bytes` of memory, for the current stream until the tensor is destroyed.
Tensor workspace(int64_t bytes, Device);
// The largest power of two up to 16 that divides all these addresses: the widest load that libraries may use.
inline int64_t common_alignment(std::initializer_list<const void*> addresses) {
  uintptr_t bits = 16;
  for (const void* p : addresses) bits |= reinterpret_cast<uintptr_t>(p);
  return int64_t(bits & -bits);
}

}  // namespace skein::cuda
