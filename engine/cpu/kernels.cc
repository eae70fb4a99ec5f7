// Which table of kernels this processor gets.
#include "engine/cpu/kernels.h"

#include "engine/cpu/kernels/widths.h"
#include "engine/device/processor.h"

namespace skein::cpu {

namespace {

Kernels choose() {
#if defined(__x86_64__) && !defined(__clang__)
  if (chosen_isa() >= Isa::kAvx512) {
    Kernels k = kKernels16;
    if (chosen_isa() == Isa::kAvx512) return k;
    const size_t i = element(kBF16);
    k.norm[i] = kRounding16.norm, k.pool[i] = kRounding16.pool;
    k.finish[i] = kRounding16.finish, k.blend[i] = kRounding16.blend;
    return k;
  }
#endif
#ifdef __x86_64__
  return kKernels8;
#else
  return kKernels4;
#endif
}

}  // namespace

const Kernels& kernels() {
  static const Kernels chosen = choose();
  return chosen;
}

const PairKernels* pair_kernels() {
#if defined(__x86_64__) && !defined(__clang__)
  static const bool pairs = multiplies_pairs();
  if (pairs) return &kPairs16;
#endif
  return nullptr;
}

const AmxKernels* amx_kernels() {
#if defined(__x86_64__) && !defined(__clang__)
  static const bool amx = chosen_isa() == Isa::kAmx;
  if (amx) return &kAmx16;
#endif
  return nullptr;
}

}  // namespace skein::cpu
