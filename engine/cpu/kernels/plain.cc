// The kernels four floats wide, without intrinsics on processors of other kinds than x86.
#include "engine/cpu/kernels/table.h"
#include "engine/cpu/kernels/widths.h"

namespace skein::cpu {

constinit const Kernels kKernels4 = kernels_of<V4>();

}  // namespace skein::cpu
