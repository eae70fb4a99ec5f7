// The average of a pair, in memory that both see.
#pragma once
#include "comm/communicator/communicator.h"

namespace skein::comm {

// Whether this rank and `peer` see each other's memory.
bool share_memory(const Communicator&, Rank peer);

// x <- (x + x of `peer`) / 2 on both, who must call it with each other; the same bits on both. x: f32 numbers
// in memory of the communicator's allocator(), as many on both. Each of the two averages one half of the
// numbers in both vectors: when it is broken off, every number is averaged on both sides or on none. Takes
// the tags `tag` and `tag` + 1.
void average_in_place(Communicator&, Rank peer, const Tensor& x, Tag tag, int64_t step);

}  // namespace skein::comm
