// The two halves of a gossip, and meetings.
#include "optim/gossip/gossip.h"

#include "comm/communicator/words.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

void give(comm::Communicator& comm, const comm::Mix& p, comm::Tag tag, int64_t k, const Tensor& x, double w) {
  std::vector<comm::Share> shares;
  for (const comm::Edge& e : p.out) shares.push_back({e.peer, float(e.weight), e.weight * w});
  if (!shares.empty()) comm.push(shares, tag, k, x);
}

void combine(const comm::Communicator& comm, MixArgs a, const comm::Mix& p,
             const std::vector<comm::Message>& shares) {
  for (const comm::Message& m : shares) a.in.push_back(m.payload);
  a.wire = comm.options().wire;
  for (const comm::Edge& e : p.out) a.sent.push_back(float(e.weight));
  mix(a);
}

double mean_weight(comm::Communicator& comm, double w) {
  double sum = 0;
  for (const auto& other : comm::gather_numbers(comm, {w})) sum += other[0];
  return sum / comm.size();
}

Gossip::Gossip(const Options& o, int world, const std::string& topology, int peers, int64_t every)
    : graph_(o, world, topology, peers, false, every),
      mixes_(buffer_policy(o) == BufferPolicy::kMix),
      copies_(o) {}

void Gossip::give(Worker& me, int64_t k, const Tensor& x, double w) {
  p_ = copies_.bearable(graph_.at(me, k));
  if (copies_) return copies_.give(me, p_, kShare, k, x, w);
  optim::give(me.comm, p_, kShare, k, x, w);
}

void Gossip::take(Worker& me, int64_t k, const Tensor& y, const Tensor& x) {
  give_buffers(me, k, 1);
  if (copies_)
    copies_.take(me, p_, kShare, k, y, x);
  else
    combine(me.comm, {.y = y, .x = x, .self = p_.self}, p_, take_shares(me, kShare, k, x));
  take_buffers(me, k, 1);
}

void Gossip::take_differences(Worker& me, int64_t k, const Tensor& d, const Tensor& x) {
  give_buffers(me, k, 1);
  fill(d, 0.f);
  if (copies_) {
    copies_.take_differences(me, p_, kShare, k, d);
  } else {
    const Tensor pair(x.shape(), kF32, x.device()), mine(x.shape(), me.comm.options().wire, x.device());
    const std::vector<comm::Message> shares = take_shares(me, kShare, k, x);
    for (size_t j = 0; j < shares.size(); ++j) {
      scaled_copy(mine, p_.in[j].weight, x);  // what this worker has given, as it traveled
      copy(pair, shares[j].payload), axpy(pair, -1.f, mine), axpy(d, 1.f, pair);
    }
  }
  take_buffers(me, k, 1);
}

void Gossip::take(Worker& me, int64_t k, const Tensor& x, double& w, const Tensor& z) {
  give_buffers(me, k, w);
  if (copies_) {
    w = w * p_.self + copies_.take(me, p_, kShare, k, x, x);
    scaled_copy(z, 1 / w, x);
    return take_buffers(me, k, w);
  }
  const std::vector<comm::Message> shares = take_shares(me, kShare, k, x);
  w *= p_.self;
  for (const comm::Message& m : shares) w += m.weight;
  combine(me.comm, {.y = x, .x = x, .self = p_.self, .z = z, .by = 1 / w}, p_, shares);
  take_buffers(me, k, w);
}

void Gossip::average(Worker& me, const Tensor& x) {
  average_buffers(me, 1);
  me.comm.mean(x).wait();
}

void Gossip::average(Worker& me, const Tensor& x, double& w, const Tensor& z) {
  average_buffers(me, w);
  me.comm.mean(x).wait();
  w = mean_weight(me.comm, w);
  scaled_copy(z, 1 / w, x);
}

// Payloads are of the type they traveled in.
std::vector<comm::Message> Gossip::take_shares(Worker& me, comm::Tag tag, int64_t k,
                                               const Tensor& like) const {
  std::vector<comm::Message> shares;
  for (const comm::Edge& e : p_.in)
    shares.push_back(me.comm.take(e.peer, tag, k, like, comm::Precision::kWire));
  return shares;
}

void Gossip::give_buffers(Worker& me, int64_t k, double w) {
  if (!mixes(me)) return;
  if (!buffers_) buffers_ = me.buffers.clone();
  scaled_copy(buffers_, w, me.buffers);
  optim::give(me.comm, p_, kBuffers, k, buffers_, w);
}

void Gossip::take_buffers(Worker& me, int64_t k, double w) {
  if (!mixes(me)) return;
  MixArgs a{.y = me.buffers, .x = buffers_, .self = p_.self, .z = me.buffers, .by = 1 / w};
  for (const comm::Message& m : take_shares(me, kBuffers, k, me.buffers)) a.in.push_back(m.payload);
  mix(a);
}

void Gossip::average_buffers(Worker& me, double w) const {
  if (!mixes(me)) return;
  scale(me.buffers, w);
  me.comm.mean(me.buffers).wait();
}

}  // namespace skein::optim
