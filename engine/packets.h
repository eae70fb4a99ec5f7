// How a pass over flat vectors runs: by elements on the host, by packets of 16 bytes on a GPU.
#pragma once
#include <algorithm>

#include "engine/launch.h"
#include "engine/pack.h"
#include "engine/tensor.h"

namespace skein {

// A functor of a pass has  template <int N> HD void operator()(int64_t i, Lanes<N>) const : it loads elements
// [i, i + N) of what it reads, computes, and stores. N is 1 or kPacket; all its pointers allow packets if
// aligned() says so of each. If it has factors that may lie in slots, settle() makes numbers of them: a loop
// that asks a slot for each element, which its stores might change, does not become vector code.
template <int N>
struct Lanes {};
inline constexpr int kPacket = 4;

template <class... S>
void settle_all(S&... factors) {
  ((factors = S(factors.get())), ...);
}

// Of a flag that turns the pass off where it is 0: the host asks it once.
inline void settle_flag(const float*& on, bool& off) {
  off = on && *on == 0;
  on = nullptr;
}

// Elements [i, i + N) as floats, and back. One alone is no pack: what the host's loops are made of stays plain.
template <int N, class T>
HD void load(float (&to)[N], const T* from, int64_t i) {
  if constexpr (N == 1) {
    to[0] = float(from[i]);
  } else {
    const Pack<T, N> p = load<N>(from + i);
    for (int j = 0; j < N; ++j) to[j] = float(p.v[j]);
  }
}
template <int N, class T>
HD void store(T* to, int64_t i, const float (&from)[N]) {
  if constexpr (N == 1) {
    to[i] = T(from[0]);
  } else {
    store(to + i, rounded<T>(from));
  }
}

// Whether packets may be loaded from and stored to all of these; empty tensors have no say.
inline bool aligned(std::initializer_list<const Tensor*> all) {
  return std::all_of(all.begin(), all.end(), [](const Tensor* t) {
    return !*t || reinterpret_cast<uintptr_t>(t->address()) % uintptr_t(kPacket * size_of(t->dtype())) == 0;
  });
}

#ifdef __CUDACC__
// A GPU's memory is kept busy by bytes in flight: an H200 moves 4.8 TB/s with some 0.7 us between asking and
// having, so about 3.4 MB must be asked for at any time, 25 kB by each of its 132 multiprocessors. Its 2048
// threads ask for 16 bytes each of every vector read, 32 kB of one vector, before any of them has to wait;
// with 4 bytes each it would be 8. One packet a thread, and as many threads as packets: who is done makes
// room for the next block at once, where a loop over a grid of fixed size ends with some blocks a turn
// behind the others.
template <class F>
__global__ void __launch_bounds__(256) packets_kernel(int64_t n, F f) {
  const int64_t i = (blockIdx.x * int64_t(blockDim.x) + threadIdx.x) * kPacket;
  if (i + kPacket <= n) {
    f(i, Lanes<kPacket>{});
  } else {
    for (int64_t j = i; j < n; ++j) f(j, Lanes<1>{});
  }
}
template <class F>
__global__ void __launch_bounds__(256) single_kernel(int64_t n, F f) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) f(i, Lanes<1>{});
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
    if (packets && i + kPacket <= n) return f(i, Lanes<kPacket>{});
    for (int64_t j = i; j < (packets ? n : i + 1); ++j) f(j, Lanes<1>{});
  }
};
#endif

// Calls f for all of [0, n) on `where`, in any order; `packets`: aligned() of all it loads and stores.
template <class F>
void for_each_packet(Device where, int64_t n, [[maybe_unused]] bool packets, F f) {
  if (n == 0) return;
  if (!where.is_cuda()) {  // the compiler makes packets itself
    if (keeps_calls()) return keep([=] { for_each_packet(where, n, packets, f); });
#pragma omp parallel if (n >= kParallelFrom)
    {
      F g = f;
      if constexpr (requires { g.settle(); }) g.settle();
#pragma omp for simd schedule(static)
      for (int64_t i = 0; i < n; ++i) g(i, Lanes<1>{});
    }
    return;
  }
#ifdef __CUDACC__
  const int64_t threads = packets ? (n + kPacket - 1) / kPacket : n, blocks = (threads + 255) / 256;
  CHECK(blocks <= 0x7FFFFFFF, "a vector too long for one pass:", n);
  const auto stream = static_cast<cudaStream_t>(current_stream(where).handle());
  if (packets)
    packets_kernel<<<unsigned(blocks), 256, 0, stream>>>(n, f);
  else
    single_kernel<<<unsigned(blocks), 256, 0, stream>>>(n, f);
  check_launch("for_each_packet");
#elif defined(SKEIN_EMULATED_GPU)
  emulated::each(current_stream(where).handle(), packets ? (n + kPacket - 1) / kPacket : n,
                 PacketOfThread<F>{n, packets, f});
#else
  CHECK(kHasCuda, "this is a CPU-only build; configure with the CUDA toolkit for --device cuda");
#endif
}

}  // namespace skein
