// The loops of engine/loops/launch.h as an emulated device runs them. It is included before that file
// and replaces nvcc's language.
#pragma once
#include <cstdint>
#include <type_traits>
#include <typeinfo>

#include "engine/loops/host.h"
#include "tests/emulated/gpu.h"

namespace skein {

void check_launch(const char* what);

// Lane of a warp whose 32 lanes take turns on one thread: each runs until it needs the others.
struct Warp {
  static constexpr int kLanes = 32;
  int lane() const;
  template <class T>
  T sum(T v) const {
    for (int step = 16; step > 0; step /= 2) v += exchange(v, step);
    return v;
  }
  float max(float v) const {
    for (int step = 16; step > 0; step /= 2) {
      const float other = exchange(v, step);
      v = v > other || other != other ? v : other;
    }
    return v;
  }

 private:
  static float exchange(float, int step);  // __shfl_xor_sync of all lanes
  static double exchange(double, int step);
};

namespace emulated {

// Calls `lane` for all 32 lanes, side by side.
void run_warp(const std::function<void()>& lane);

// Calls `check` with the words of f that may be addresses.
template <class F, class Check>
void each_address(F f, Check check) {
  static_assert(std::is_trivially_copyable_v<F>);
#if defined(__GNUC__) && !defined(__clang__)  // padding between the members may look like an address
  __builtin_clear_padding(&f);
  size_t bytes = sizeof f;
  if constexpr (requires { F::kAddresses; }) bytes = F::kAddresses;
  check(typeid(F).name(), &f, bytes);
#endif
}

// CUDA copies f to the device, so it must be trivially copyable and must not refer to host memory. `run`
// does the kernel's work.
template <class F, class Run>
void launch(void* stream, const F& f, Run run) {
  check_place(stream);
  each_address(f, check_arguments);
  enqueue(stream, typeid(F).name(), [f, run] { each_address(f, check_alive), run(f); });
  check_launch(typeid(F).name());
}

template <class F>
void each(void* stream, int64_t n, const F& f) {
  launch(stream, f, [n](const F& f) { in_blocks(1, n, run_elements<F>, &f); });
}
template <class F>
void rows(void* stream, int64_t rows, int64_t cols, const F& f) {
  launch(stream, f, [rows, cols](const F& f) { in_blocks(rows, cols, run_rows<F>, &f); });
}
template <class F>
void teams(void* stream, int64_t teams, const F& f) {
  launch(stream, f, [teams](const F& f) {
#pragma omp parallel for schedule(static) if (teams > 1)
    for (int64_t t = 0; t < teams; ++t) run_warp([&] { f(t, Warp{}); });
  });
}

}  // namespace emulated
}  // namespace skein
