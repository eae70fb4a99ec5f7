// SharedModel: its arithmetic.
#include "optim/gossip/shared_model.h"

#include "engine/vectors/mixing.h"

namespace skein::optim {

SharedModel::SharedModel(Worker& me, const Options& o, const Graph& graph) : copies_(o) {
  const bool mixes = buffer_policy(o) == BufferPolicy::kMix;
  const int64_t n = me.x.size(), buffers = mixes ? me.buffers.size() : 0;
  all_ = Tensor({n + buffers}, kF32, me.x.device());
  x_ = all_.view({n});
  copy(x_, me.x);
  if (buffers > 0) b_ = all_.view({buffers}, n), copy(b_, me.buffers), buffers_before_ = me.buffers.clone();
  copies_.start(me, graph, all_);
  if (!copies_) sent_ = all_.clone();
}

void SharedModel::show(Worker& me) {
  copy(me.x, x_);
  if (b_) copy(me.buffers, b_), copy(buffers_before_, b_);
  shown_ = true;
}

void SharedModel::step(Worker& me) {
  me.local_step(x_);
  changed_ = true;
  if (b_) axpy(b_, 1.f, me.buffers), axpy(b_, -1.f, buffers_before_);
  show(me);
}

void SharedModel::mean(comm::Communicator& c) { c.mean(all_).wait(); }

// It is rounded if it travels so, or the pair's sum would not be conserved.
void SharedModel::begin_exchange(const comm::Communicator& c, comm::Rank with) {
  changed_ = false;
  with_ = with;
  if (copies_) {
    payload_ = copies_.news(with, all_, copies_.codes(all_.device()));
    return;
  }
  copy(sent_, all_);
  payload_ = sent_;
  if (c.options().wire == kF32) return;
  const Tensor rounded(all_.shape(), c.options().wire, all_.device());
  copy(rounded, sent_), copy(sent_, rounded);
}

void SharedModel::receive(const comm::Message& m, const comm::Communicator& c) {
  if (copies_) return copies_.hear(c, with_, m);
  received_ = c.beside(sent_, m).payload;
}

// x <- x + (received - sent) / 2. If x is still what was sent, that is the mean of the two, with the same
// bits on both sides.
void SharedModel::go_half_way(const comm::Communicator& c) {
  shown_ = false;
  if (copies_) {
    const float half = float(copies_.bearable(0.5));
    axpy(all_, half, copies_.received(with_)), axpy(all_, -half, copies_.sent(with_));
  } else {
    skein::go_half_way(all_, sent_, received_, changed_ || c.options().wire != kF32);
    received_ = {};
  }
}

void SharedModel::visit(Archive& a) {
  a("x", all_);
  copies_.visit(a);
  shown_ = false;
}

void SharedModel::finish() const {
  if (!all_.device().is_host()) current_stream(all_.device()).sync();
}

}  // namespace skein::optim
