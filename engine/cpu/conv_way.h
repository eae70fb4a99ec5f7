// Which of our convolutions, or oneDNN's, computes a shape.
#pragma once
#include "engine/backend.h"

namespace skein::cpu {

enum class ConvPass { kForward, kData, kWeights };
enum class ConvWay { kOneDnn, kDirect, kWinograd, kDepthwise, kGrouped };

// Depends on the shapes, the types, the processor and the number of threads. conv2d.cc gives the reasons, and
// bench/conv_bench says what the choice loses to the fastest way.
ConvWay way_of(const ConvArgs&, ConvPass);

}  // namespace skein::cpu
