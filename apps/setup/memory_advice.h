// What to say when a step does not fit into a device's memory: which tensor, and which batch would fit.
#pragma once
#include <functional>

#include "apps/setup/setup.h"

namespace skein::apps {

// Returns compute(), a step's gradient of `batch` images in so many passes (--accumulate). Where that throws
// OutOfMemory, throws Error that adds what would fit, found by trying: once all of the step's own memory is
// free again, halves of a pass (blank images, forward and backward, so parameters' gradients and running
// statistics are lost) until one fits; then
//   images = tried * (room - at rest) / (taken at its peak - at rest), 1/16 less for what lies
//            between blocks,
// which is tried too. Where the room is unknown the number that did fit is named.
Tensor within_memory(const Setup&, int64_t batch, int64_t passes, const std::function<Tensor()>& compute);

// The rule alone; at least `tried`, at most one less than `failed`, a multiple of 8 from 16 on.
int64_t batch_that_fits(int64_t tried, int64_t failed, int64_t at_rest, int64_t peak, int64_t room);

}  // namespace skein::apps
