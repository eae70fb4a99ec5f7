// How a loop runs on each device: for_each over elements. The only <<<>>> for pointwise code.
#pragma once
#include "engine/device.h"
#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

namespace skein {

#ifdef __CUDACC__
template <class F>
__global__ void for_each_kernel(int64_t n, F f) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * blockDim.x)
    f(i);
}
void check_launch(const char* what);  // throws Error if the launch before it failed
#endif

// Loops shorter than this run on the calling thread: waking a team costs about this much work.
inline constexpr int64_t kParallelFrom = 1 << 14;

// Calls f(i) for every i in [0, n) on `where`, in any order. F is a named functor, never a lambda: nvcc hides
// the type of __host__ __device__ lambdas from the host compiler, and the loop stops vectorising (18x measured).
template <class F>
void for_each(Device where, int64_t n, F f) {
  if (n == 0) return;
  if (!where.is_cuda()) {
    if (n < kParallelFrom) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) f(i);
      return;
    }
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) f(i);
    return;
  }
#ifdef __CUDACC__
  const int64_t blocks = (n + 255) / 256;
  for_each_kernel<<<unsigned(blocks < 65536 ? blocks : 65536), 256, 0,
                    static_cast<cudaStream_t>(current_stream(where).handle())>>>(n, f);
  check_launch("for_each");
#else
  CHECK(kHasCuda, "this is a CPU-only build; configure with the CUDA toolkit for --device cuda");
#endif
}

}  // namespace skein
