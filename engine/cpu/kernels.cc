// Which table of kernels this processor gets.
#include "engine/cpu/kernels.h"

#include "engine/cpu/kernels/widths.h"
#include "engine/device/processor.h"

namespace skein::cpu {

const Kernels& kernels() {
#if defined(__x86_64__) && !defined(__clang__)
  static const bool wide = chosen_isa() >= Isa::kAvx512;
  if (wide) return kKernels16;
#endif
#ifdef __x86_64__
  return kKernels8;
#else
  return kKernels4;
#endif
}

const PairKernels* pair_kernels() {
#if defined(__x86_64__) && !defined(__clang__)
  static const bool pairs = multiplies_pairs();
  if (pairs) return &kPairs16;
#endif
  return nullptr;
}

}  // namespace skein::cpu
