// The kernels for AVX2, and for processors of other kinds: what every file of the engine is compiled for.
#include "engine/cpu/kernels/table.h"
#include "engine/cpu/kernels/widths.h"

namespace skein::cpu {

constinit const Kernels kKernels8 = kernels_of<V8>();

}  // namespace skein::cpu
