// How a pass over flat vectors runs: by elements on the host, by packets of 16 bytes on a GPU.
#pragma once
#include <algorithm>

#include "engine/loops/launch.h"
#include "engine/loops/pack.h"
#include "engine/vectors/segments.h"

namespace skein {

inline constexpr int kPacket = 4;  // elements that a GPU's thread loads and stores at once

#ifdef __CUDACC__
// A GPU's memory is kept busy by bytes in flight: an H200 moves 4.8 TB/s with some 0.7 us between asking
// and having, so about 3.4 MB must be asked for at any time, 25 kB by each of its 132 multiprocessors.
// Its 2048 threads ask for 16 bytes each of every vector read, 32 kB of one vector, before any of them
// has to wait; with 4 bytes each it would be 8. Each thread handles one packet, because a block that is
// done makes room for the next one at once, while a loop over a grid of fixed size ends with some blocks
// a turn behind the others.
template <class F>
__global__ void __launch_bounds__(256) packets_kernel(int64_t n, F f) {
  const int64_t i = (blockIdx.x * int64_t(blockDim.x) + threadIdx.x) * kPacket;
  if (i + kPacket <= n) {
    f.template run<kPacket>(i);
  } else {
    for (int64_t j = i; j < n; ++j) f.template run<1>(j);
  }
}
template <class F>
__global__ void __launch_bounds__(256) single_kernel(int64_t n, F f) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) f.template run<1>(i);
}
#endif
#ifdef SKEIN_EMULATED_GPU
// What a thread of packets_kernel, or of single_kernel, does.
template <class F>
struct PacketOfThread {
  int64_t n;
  bool packets;
  F f;
  void operator()(int64_t thread) const {
    const int64_t i = packets ? thread * kPacket : thread;
    if (packets && i + kPacket <= n) return f.template run<kPacket>(i);
    for (int64_t j = i; j < (packets ? n : i + 1); ++j) f.template run<1>(j);
  }
};
#endif

// What a thread of the host does: some blocks of Segments::kBlock elements, with its own copy of the functor.
template <class F>
struct ShareOfPass {
  int64_t n;
  const F& f;
  void operator()(int64_t block, int64_t last_block) const {
    F g = f;
    g.settle();
    const int64_t from = block * Segments::kBlock, to = std::min(n, last_block * Segments::kBlock);
    if constexpr (F::kByBlocks) {
      for (int64_t b = from; b < to; b += Segments::kBlock) {
        F h = g;
        h.enter(b);
        const int64_t end = std::min(to, b + Segments::kBlock);
#pragma omp simd
        for (int64_t i = b; i < end; ++i) h.template run<1>(i);
      }
    } else {
#pragma omp simd
      for (int64_t i = from; i < to; ++i) g.template run<1>(i);
    }
  }
};

// Calls f.run<N>(i) on `where`, in any order, so that the intervals [i, i + N) are [0, n). N is 1 or, where
// f.aligned(), kPacket. The host calls f.settle() before its loop and, where F::kByBlocks, f.enter(i) before
// each block of Segments::kBlock elements.
template <class F>
void run_pass(Device where, int64_t n, F f) {
  if (n == 0) return;
  if (!where.is_cuda()) {  // the compiler makes packets itself
    if (keeps_calls()) return keep([=] { run_pass(where, n, f); });
    return in_shares((n + Segments::kBlock - 1) / Segments::kBlock, n >= kParallelFrom, ShareOfPass<F>{n, f});
  }
  [[maybe_unused]] const bool packets = f.aligned();
#ifdef __CUDACC__
  const int64_t threads = packets ? (n + kPacket - 1) / kPacket : n, blocks = (threads + 255) / 256;
  CHECK(blocks <= 0x7FFFFFFF, "a vector too long for one pass:", n);
  const auto stream = static_cast<cudaStream_t>(current_stream(where).handle());
  if (packets)
    packets_kernel<<<unsigned(blocks), 256, 0, stream>>>(n, f);
  else
    single_kernel<<<unsigned(blocks), 256, 0, stream>>>(n, f);
  check_launch("each_element");
#elif defined(SKEIN_EMULATED_GPU)
  emulated::each(current_stream(where).handle(), packets ? (n + kPacket - 1) / kPacket : n,
                 PacketOfThread<F>{n, packets, f});
#else
  refuse_kernel(where);
#endif
}

}  // namespace skein
