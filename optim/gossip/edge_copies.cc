// Both ends add what the same codes say, so their copies are equal to the bit.
#include "optim/gossip/edge_copies.h"

#include <utility>

#include "comm/communicator/communicator.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

EdgeCopies::EdgeCopies(const Options& o) : codec_(codec_of(o)) {}

comm::Mix EdgeCopies::bearable(comm::Mix p) const {
  if (codec_.kind != Codec::kTopK) return p;
  for (comm::Edge& e : p.out) e.weight *= codec_.keep;
  for (comm::Edge& e : p.in) e.weight *= codec_.keep;
  return comm::in_fp32(std::move(p));
}

void EdgeCopies::start(Worker& me, const Graph& graph, const Tensor& like) {
  if (me.comm.size() == 1) codec_ = {};
  sent_.clear(), received_.clear();
  if (!codec_) return;
  const auto vector = [&] { return Tensor::zeros(like.shape(), kF32, like.device()); };
  const Neighbours all = graph.neighbours(me.comm.rank());
  for (comm::Rank to : all.out) sent_[to].x = vector();
  for (comm::Rank from : all.in) received_[from].x = vector();
  difference_ = vector(), lost_ = vector();
}

Tensor EdgeCopies::blank(const Worker& me) const {
  return me.visible({codec_.bytes(difference_.size())}, kU8);
}

void EdgeCopies::give(const Worker& me, const comm::Mix& p, comm::Tag tag, int64_t k, const Tensor& x,
                      double w) {
  for (const comm::Edge& e : p.out) {
    Copy& there = sent_.at(e.peer);
    if (!there.known) {
      me.comm.push(e.peer, tag, k, 1, x, e.weight * w);
      copy(there.x, x);
      there.known = 1;
      continue;
    }
    copy(difference_, x), axpy(difference_, -1.f, there.x);
    fill(lost_, 0.f);
    const Tensor codes = blank(me);
    encode(codec_, codes, difference_, lost_);
    decode_add(codec_, there.x, codes);
    me.comm.push(e.peer, tag, k, 1, codes, e.weight * w);
  }
}

double EdgeCopies::receive(const Worker& me, comm::Rank from, comm::Tag tag, int64_t k) {
  Copy& of = received_.at(from);
  const comm::Message m = me.comm.take(from, tag, k, of.known ? blank(me) : of.x);
  hear(of, m.payload);
  return m.weight;
}

void EdgeCopies::hear(Copy& of, const Tensor& payload) {
  if (of.known)
    decode_add(codec_, of.x, payload);
  else
    copy(of.x, payload);
  of.known = 1;
}

comm::Message EdgeCopies::share(const Worker& me, const comm::Edge& e, comm::Message m) {
  Copy& of = received_.at(e.peer);
  hear(of, me.comm.beside(of.known ? blank(me) : of.x, m).payload);
  m.payload = Tensor(of.x.shape(), kF32, of.x.device());
  scaled_copy(m.payload, e.weight, of.x);
  return m;
}

void EdgeCopies::leave(const comm::Mix& p, const Tensor& y) const {
  for (const comm::Edge& e : p.out) axpy(y, -e.weight, sent_.at(e.peer).x);
}

double EdgeCopies::take(Worker& me, const comm::Mix& p, comm::Tag tag, int64_t k, const Tensor& y,
                        const Tensor& x) {
  if (y.storage() != x.storage() || y.offset() != x.offset()) copy(y, x);
  leave(p, y);
  double weights = 0;
  for (const comm::Edge& e : p.in) {
    weights += receive(me, e.peer, tag, k);
    axpy(y, e.weight, received_.at(e.peer).x);
  }
  return weights;
}

void EdgeCopies::take_differences(Worker& me, const comm::Mix& p, comm::Tag tag, int64_t k, const Tensor& d) {
  for (const comm::Edge& e : p.in) {
    receive(me, e.peer, tag, k);
    copy(difference_, received_.at(e.peer).x), axpy(difference_, -1.f, sent_.at(e.peer).x);
    axpy(d, e.weight, difference_);
  }
}

void EdgeCopies::visit(Archive& a) {
  const auto all = [&](const char* which, std::map<comm::Rank, Copy>& copies) {
    for (auto& [peer, c] : copies) {
      Under one(a, text(which, peer, "."));
      one("x", c.x), one("known", c.known);
    }
  };
  all("copies.sent", sent_), all("copies.received", received_);
}

}  // namespace skein::optim
