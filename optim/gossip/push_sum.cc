// PushSum: one vector for X and the statistics behind it.
#include "optim/gossip/push_sum.h"

#include "engine/vectors/mixing.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

void PushSum::start(const Worker& me, bool mixes_buffers) {
  const int64_t n = me.x.size(), buffers = mixes_buffers ? me.buffers.size() : 0;
  all_ = Tensor({n + buffers}, kF32, me.x.device());
  x_ = all_.view({n});
  if (buffers > 0) b_ = all_.view({buffers}, n), scaled_copy(b_, 1.f, me.buffers);
  copy(x_, me.x);
}

void PushSum::show(Worker& me) const { scaled_copy(me.x, 1 / w_, x_); }

void PushSum::take_buffers(const Worker& me) {
  if (b_) scaled_copy(b_, w_, me.buffers);
}

void PushSum::give_buffers(Worker& me) const {
  if (b_) scaled_copy(me.buffers, 1 / w_, b_);
}

void PushSum::add(const std::vector<Tensor>& in, const std::vector<double>& w) {
  mix({.y = all_, .x = all_, .in = in});
  for (const double one : w) w_ += one;
}

void PushSum::visit(Archive& a) { a("x", all_), a("w", w_); }

}  // namespace skein::optim
