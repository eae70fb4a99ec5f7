// Communicator: payloads that whoever makes them writes where, and in the type, they are sent.
#include "comm/communicator/communicator.h"

namespace skein::comm {

Tensor Communicator::blank(const Tensor& like) const {
  return like.device().is_host() ? Tensor({like.size()}, options_.wire, transport_.memory().allocator())
                                 : Tensor({like.size()}, options_.wire, like.device());
}

void Communicator::hand_over(Rank to, Tag tag, int64_t step, const Tensor& filled, double weight) {
  CHECK(tag < kOwnTags && step >= 0, tag, step);
  CHECK(filled.rank() == 1 && filled.dtype() == options_.wire, filled.shape(), filled.dtype(), options_.wire);
  Header h = header(tag, step, filled, options_.wire, layout_of(filled.size(), kF32));
  h.dtype = uint8_t(kF32);
  meter_->pushed(id_, h, now());
  send_same({{to, 1, weight}}, h, filled, true);
}

}  // namespace skein::comm
