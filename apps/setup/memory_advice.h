// The error for a step that does not fit into a device's memory: it names the tensor, and the
// batch that would fit.
#pragma once
#include <functional>

#include "apps/setup/setup.h"

namespace skein::apps {

// Returns compute(), a step's gradient of `batch` images in so many passes (--accumulate). If that throws
// OutOfMemory, throws Error that adds what would fit. It finds that by trying, once all of the step's own
// memory is free again: it halves a pass (of blank images, forward and backward, so gradients and running
// statistics are lost) until one fits; then
//   images = tried * (room - at rest) / (taken at its peak - at rest), 1/16 less for what lies
//            between blocks,
// which is tried, too. If the room is unknown, it names the number that did fit.
Tensor within_memory(const Setup&, int64_t batch, int64_t passes, const std::function<Tensor()>& compute);

// A pass of `n` blank images, forward and backward: gradients and running statistics are lost.
void try_step(const Setup&, int64_t n);

// The rule alone. The result is at least `tried`, at most `failed` - 1, and a multiple of 8 from 16 on.
int64_t batch_that_fits(int64_t tried, int64_t failed, int64_t at_rest, int64_t peak, int64_t room);

}  // namespace skein::apps
