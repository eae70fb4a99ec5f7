// Whether a fused convolution is likely the faster one, where nothing is measured.
#pragma once
#include "engine/cuda/conv/conv_graph.h"

namespace skein::cuda {

enum class Worth {
  kNo,
  kIfReady,         // with a kernel that cuDNN ships
  kEvenIfCompiled,  // also at the price of compiling one, up to a second in every process
};
// A roofline: a fused pass saves the pass over the image before or behind it, and may multiply more slowly.
// For images of 16 bits.
Worth worth_fusing(const ConvProblem&);

}  // namespace skein::cuda
