// Both ends add what the same codes say, so their copies are equal to the bit.
#include "optim/gossip/edge_copies.h"

#include <utility>

#include "comm/communicator/communicator.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

EdgeCopies::EdgeCopies(const Options& o) : codec_(codec_of(o)) {}

void EdgeCopies::refuse_mixed_buffers(const Options& o, const std::string& algorithm) {
  if (codec_of(o) && buffer_policy(o) == BufferPolicy::kMix)
    throw BadOption(text("--wire ", o.word("wire", ""),
                         " with --bn-policy mix: running statistics travel within ", algorithm,
                         "'s messages, and are not to be coded; take another --bn-policy"));
}

double EdgeCopies::bearable(double weight) const {
  return codec_.kind == Codec::kTopK ? weight * codec_.keep : weight;
}

comm::Mix EdgeCopies::bearable(comm::Mix p) const {
  if (codec_.kind != Codec::kTopK) return p;
  for (comm::Edge& e : p.out) e.weight = bearable(e.weight);
  for (comm::Edge& e : p.in) e.weight = bearable(e.weight);
  return comm::in_fp32(std::move(p));
}

void EdgeCopies::start(Worker& me, const Graph& graph, const Tensor& like) {
  if (me.comm.size() == 1) codec_ = {};
  sent_.clear(), received_.clear();
  if (!codec_) return;
  const auto vector = [&] { return Tensor::zeros(like.shape(), kF32, like.device()); };
  const Neighbors all = graph.neighbors(me.comm.rank());
  for (comm::Rank to : all.out) sent_[to].x = vector();
  for (comm::Rank from : all.in) received_[from].x = vector();
  difference_ = vector(), lost_ = vector();
}

Tensor EdgeCopies::codes(Device d) const { return Tensor({codec_.bytes(difference_.size())}, kU8, d); }
Tensor EdgeCopies::codes(const Worker& me) const {
  return me.visible({codec_.bytes(difference_.size())}, kU8);
}

void EdgeCopies::give(const Worker& me, const comm::Mix& p, comm::Tag tag, int64_t k, const Tensor& x,
                      double w) {
  for (const comm::Edge& e : p.out) me.comm.push(e.peer, tag, k, 1, news(e.peer, x, codes(me)), e.weight * w);
}

Tensor EdgeCopies::news(comm::Rank to, const Tensor& x, const Tensor& codes) {
  Copy& there = sent_.at(to);
  if (!there.known) {
    copy(there.x, x);
    there.known = 1;
    return there.x;
  }
  copy(difference_, x), axpy(difference_, -1.f, there.x);
  fill(lost_, 0.f);
  encode(codec_, codes, difference_, lost_);
  decode_add(codec_, there.x, codes);
  return codes;
}

double EdgeCopies::receive(const Worker& me, comm::Rank from, comm::Tag tag, int64_t k) {
  Copy& of = received_.at(from);
  const comm::Message m = me.comm.take(from, tag, k, of.known ? codes(me) : of.x);
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

void EdgeCopies::hear(const comm::Communicator& c, comm::Rank from, const comm::Message& m) {
  Copy& of = received_.at(from);
  hear(of, c.beside(of.known ? codes(of.x.device()) : of.x, m).payload);
}

comm::Message EdgeCopies::share(const Worker& me, const comm::Edge& e, comm::Message m) {
  hear(me.comm, e.peer, m);
  const Tensor& x = received(e.peer);
  m.payload = Tensor(x.shape(), kF32, x.device());
  scaled_copy(m.payload, e.weight, x);
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
