// The tables of kernels that a program holds. Those after the first may be used only where chosen_isa() has them.
#pragma once
#include "engine/cpu/kernels.h"

namespace skein::cpu {

extern const Kernels kKernels8;
extern const Kernels kKernels16;    // AVX-512
extern const PairKernels kPairs16;  // AVX-512 with bf16

}  // namespace skein::cpu
