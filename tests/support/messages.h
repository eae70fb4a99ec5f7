// Messages of one number, for tests of what keeps them.
#pragma once
#include "comm/parcels.h"

namespace skein::comm {

inline Message message(Rank from, Tag tag, int64_t step, float value, uint32_t communicator = 1) {
  Message m;
  m.communicator = communicator;
  m.epoch = 1;
  m.from = from;
  m.tag = tag;
  m.step = step;
  m.payload = Tensor::of<float>({1}, {value});
  m.bytes = 4;
  return m;
}
inline float value_of(const std::optional<Message>& m) { return m ? *m->payload.data<float>() : -1; }

}  // namespace skein::comm
