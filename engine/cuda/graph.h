// Captured work of a stream, without CUDA's headers. engine/seam.def has the calls that make and launch it.
#pragma once
#include "engine/seam.h"

namespace skein::cuda {

struct Graph {
  std::shared_ptr<void> executable;  // null: nothing was captured
  int64_t nodes = 0;
};

// Launches it and waits for its end. Seconds from its first node to its last by the device's clock.
double seconds_of(const Graph&, void* stream);

}  // namespace skein::cuda
