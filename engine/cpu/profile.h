// Measures a thread's time by primitive, for benchmarks and summaries. It is always on: two
// clock reads per call.
#pragma once
#include <array>
#include <ctime>

#include "engine/clock.h"

namespace skein::cpu {

enum Kind : int { kGemm, kConvForward, kConvData, kConvWeights, kNormForward, kNormBackward, kPool, kKinds };
inline constexpr const char* kKindNames[kKinds] = {
    "gemm", "conv forward", "conv data", "conv weights", "norm forward", "norm backward", "pool"};

// Processor seconds of the calling thread in each kind since it started; the caller may clear them.
inline std::array<double, kKinds>& profile() {
  thread_local std::array<double, kKinds> seconds{};
  return seconds;
}

inline double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

using Timed = skein::Timed<thread_seconds>;

}  // namespace skein::cpu
