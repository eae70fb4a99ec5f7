// Measures a thread's time and work by primitive, for benchmarks and summaries. It is always on: two
// clock reads per call.
#pragma once
#include <array>
#include <ctime>

#include "engine/clock.h"
#include "engine/tensor.h"

namespace skein::cpu {

enum Kind : int { kGemm, kConvForward, kConvData, kConvWeights, kNormForward, kNormBackward, kPool, kKinds };
inline constexpr const char* kKindNames[kKinds] = {
    "gemm", "conv forward", "conv data", "conv weights", "norm forward", "norm backward", "pool"};

struct Work {
  double seconds = 0;  // of the processor
  double flops = 0;    // of products: two for each multiply-add of the plain sum
  double bytes = 0;    // of passes: what they read and write
};

// What the calling thread has done of each kind since it started; the caller may clear it.
inline std::array<Work, kKinds>& profile() {
  thread_local std::array<Work, kKinds> all{};
  return all;
}

inline double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// Counts a call and the time of its lifetime.
class Counted {
 public:
  Counted(Kind k, double flops, double bytes) : timed_(profile()[size_t(k)].seconds) {
    profile()[size_t(k)].flops += flops, profile()[size_t(k)].bytes += bytes;
  }

 private:
  Timed<thread_seconds> timed_;
};

// The bytes of all these tensors; some may be empty.
template <class... T>
double bytes_of(const T&... t) {
  return ((t ? double(t.bytes()) : 0.) + ... + 0.);
}

}  // namespace skein::cpu
