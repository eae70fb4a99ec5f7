// Whether a fused convolution is likely faster, when nothing is measured.
#pragma once
#include "engine/cuda/conv/conv_graph.h"

namespace skein::cuda {

enum class Worth {
  kNo,
  kIfReady,         // fuse if cuDNN ships the kernel
  kEvenIfCompiled,  // fuse even if a kernel must be compiled, up to a second in every process
};
// A roofline: a fused pass saves the pass over the image before or behind it, and may multiply more slowly.
// For images of 16 bits.
Worth worth_fusing(const ConvProblem&);

}  // namespace skein::cuda
