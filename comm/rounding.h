// Error feedback for a narrow wire: what rounding takes from a share stays with its sender.
#pragma once
#include <vector>

#include "comm/communicator.h"

namespace skein::comm {

// y <- y + sum over the shares of (factor * x - what arrives of it), to be called with what was just pushed;
// y is the sender's own share, x what was pushed, another tensor. The sum over senders and messages is then
// the same as before the gossip, to fp32 rounding, however narrow the wire. Does nothing where the wire
// carries x as it is.
void keep_rounding(const Communicator&, const std::vector<Share>&, const Tensor& y, const Tensor& x);

}  // namespace skein::comm
