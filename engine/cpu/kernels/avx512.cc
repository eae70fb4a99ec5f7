// The kernels for AVX-512, 16 floats wide. What is included before the pragma is compiled for AVX2, and the
// linker may use it everywhere; what stands after it is used only through this table.
#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "engine/cpu/kernels/widths.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

#if defined(__x86_64__) && !defined(__clang__)  // clang does not know the pragma
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl")
#include "engine/cpu/kernels/table.h"

namespace skein::cpu {

constinit const Kernels kKernels16 = kernels_of<V16>();

}  // namespace skein::cpu
#pragma GCC pop_options
#endif
