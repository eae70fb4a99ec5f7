// How a loop runs on each device: over elements, over rows, or with a team for each row. Most of our kernels
// are launched here. Compiled with SKEIN_EMULATED_GPU, after tests/emulated/launch.h, the same files run on
// a device in software.
#pragma once
#include "engine/device/recording.h"
#include "engine/loops/host.h"
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
// Still one thread for each element; each computes its row's state again.
template <class F>
__global__ void for_each_row_kernel(int64_t n, int64_t cols, F f) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * blockDim.x)
    f.row(i / cols)(i % cols);
}
void check_launch(const char* what);  // throws Error if the launch before it failed
inline unsigned grid_for(int64_t threads) {
  const int64_t blocks = (threads + 255) / 256;
  return unsigned(blocks < 65536 ? blocks : 65536);
}
#endif

// What works on one row: one host thread, or all 32 lanes of a CUDA warp side by side.
struct Alone {
  static constexpr int kLanes = 1;
  HD int lane() const { return 0; }
  HD float sum(float v) const { return v; }
  HD double sum(double v) const { return v; }
  HD float max(float v) const { return v; }
};
#ifdef __CUDACC__
struct Warp {
  static constexpr int kLanes = 32;
  __device__ int lane() const { return int(threadIdx.x & 31); }
  template <class T>  // float or double
  __device__ T sum(T v) const {
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step);
    return v;
  }
  __device__ float max(float v) const {
    for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, step));
    return v;
  }
};
// At most 85 registers, so that three blocks share a multiprocessor.
template <class F>
__global__ void __launch_bounds__(256, 3) for_each_team_kernel(int64_t teams, F f) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x / 32;
  for (int64_t t = (blockIdx.x * int64_t(blockDim.x) + threadIdx.x) / 32; t < teams; t += stride)
    f(t, Warp{});
}
#endif

// Thrown when a CPU-only build is asked to run a loop on a GPU.
[[noreturn]] inline void refuse_kernel(Device where) {
  throw Error(text("this is a CPU-only build; configure with the CUDA toolkit for ", where));
}

// Calls f(i) for every i in [0, n) on `where`, in any order. F is a named functor, never a
// lambda: nvcc hides the type of __host__ __device__ lambdas from the host compiler, and the loop
// stops vectorising (18x measured).
template <class F>
void for_each(Device where, int64_t n, F f) {
  if (n == 0) return;
  if (!where.is_cuda()) {
    if (keeps_calls()) return keep([=] { in_blocks(1, n, run_elements<F>, &f); });
    return in_blocks(1, n, run_elements<F>, &f);
  }
#ifdef __CUDACC__
  for_each_kernel<<<grid_for(n), 256, 0, static_cast<cudaStream_t>(current_stream(where).handle())>>>(n, f);
  check_launch("for_each");
#elif defined(SKEIN_EMULATED_GPU)
  emulated::each(current_stream(where).handle(), n, f);
#else
  refuse_kernel(where);
#endif
}

// Calls f.row(r)(c) for every c in [0, cols) of every row: what depends only on the row is
// computed once per row.
template <class F>
void for_each_row(Device where, int64_t rows, int64_t cols, F f) {
  if (rows == 0 || cols == 0) return;
  if (!where.is_cuda()) {
    // row() may read memory, so it must not be called while recording.
    if (keeps_calls()) return keep([=] { in_blocks(rows, cols, run_rows<F>, &f); });
    return in_blocks(rows, cols, run_rows<F>, &f);
  }
#ifdef __CUDACC__
  for_each_row_kernel<<<grid_for(rows * cols), 256, 0,
                        static_cast<cudaStream_t>(current_stream(where).handle())>>>(rows * cols, cols, f);
  check_launch("for_each_row");
#elif defined(SKEIN_EMULATED_GPU)
  emulated::rows(current_stream(where).handle(), rows, cols, f);
#else
  refuse_kernel(where);
#endif
}

// Calls f(t, member) for every t in [0, teams), with a team of Alone or of Warp; `work` is how many elements
// all teams touch together.
template <class F>
void for_each_team(Device where, int64_t teams, int64_t work, F f) {
  if (teams == 0) return;
  if (!where.is_cuda()) {
    if (keeps_calls()) return keep([=] { for_each_team(where, teams, work, f); });
    return in_shares(teams, work >= kParallelFrom, [&](int64_t t, int64_t last) {
      for (; t < last; ++t) f(t, Alone{});
    });
  }
#ifdef __CUDACC__
  for_each_team_kernel<<<grid_for(teams * 32), 256, 0,
                         static_cast<cudaStream_t>(current_stream(where).handle())>>>(teams, f);
  check_launch("for_each_team");
#elif defined(SKEIN_EMULATED_GPU)
  emulated::teams(current_stream(where).handle(), teams, f);
#else
  refuse_kernel(where);
#endif
}

}  // namespace skein
