// The tables of kernels that a program holds. Those for AVX-512 may be used only where chosen_isa() has it.
#pragma once
#include "engine/cpu/kernels.h"

namespace skein::cpu {

extern const Kernels kKernels4;            // any processor
extern const Kernels kKernels8;            // AVX2
extern const Kernels kKernels16;           // AVX-512
extern const RoundingKernels kRounding16;  // AVX-512 with bf16
extern const PairKernels kPairs16;         // AVX-512 with bf16
extern const AmxKernels kAmx16;            // AMX with bf16

}  // namespace skein::cpu
