// The kernels for AVX2, for which every file of the engine is compiled on x86.
#include "engine/cpu/kernels/table.h"
#include "engine/cpu/kernels/widths.h"

namespace skein::cpu {

constinit const Kernels kKernels8 = kernels_of<V8>();

}  // namespace skein::cpu
