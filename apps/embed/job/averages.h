// Averages of arrays that are a caller's own, over the workers of a job.
#pragma once
#include "comm/communicator/communicator.h"

namespace skein::apps {

// x <- its mean over all workers, with the same bits on all. f32; or i64, whose elements are the bits of doubles. Empty: this
// worker has no array that can be averaged. Throws BadOption on all workers if one has none, or if theirs differ in size
// or type. Collective.
void average_floats(comm::Communicator&, const Tensor& x);
void average_doubles(comm::Communicator&, const Tensor& bits);

}  // namespace skein::apps
