// Statuses of the CUDA runtime as exceptions, and its handles as the rest of the engine holds them.
#pragma once
#include <cuda_runtime.h>

#include "engine/base.h"

namespace skein::cuda {

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error; else the next launch would report it
  throw Error(
      text("CUDA: ", what, " failed: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")"));
}
inline cudaStream_t stream_of(void* s) { return static_cast<cudaStream_t>(s); }
inline cudaEvent_t event_of(void* e) { return static_cast<cudaEvent_t>(e); }

}  // namespace skein::cuda
