// Averages a caller's arrays over the workers of a job.
#pragma once
#include "comm/communicator/communicator.h"

namespace skein::apps {

// x <- its mean over all workers, with the same bits on all of them. x is f32; average_doubles() takes i64
// elements that hold the bits of doubles. An empty x says that this worker has no array that can be averaged.
// Throws BadOption on all workers if one of them has none, or if sizes or types differ. Collective.
void average_floats(comm::Communicator&, const Tensor& x);
void average_doubles(comm::Communicator&, const Tensor& bits);

}  // namespace skein::apps
