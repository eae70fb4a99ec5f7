// Coded gossip: a worker sends the difference between x and the receiver's copy of it. Both ends of
// an edge keep that copy, so the next difference contains what the codec has rounded off, and no
// model is coded. After CHOCO-SGD: Koloskova, Stich & Jaggi, ICML 2019, but with a copy per edge
// instead of one per neighbor.
#pragma once
#include <map>

#include "comm/communicator/communicator.h"
#include "comm/topology/topology.h"
#include "engine/vectors/codec.h"
#include "optim/gossip/graph.h"

namespace skein::optim {

// For one thread. It holds a vector for each in-peer and each out-peer of any gossip, and two more.
class EdgeCopies {
 public:
  explicit EdgeCopies(const Options&);  // --wire
  // BadOption: a codec with --bn-policy mix. For algorithms whose messages have the statistics within.
  static void refuse_mixed_buffers(const Options&, const std::string& algorithm);
  explicit operator bool() const { return bool(codec_); }
  // The mixing weights that are stable with this codec. With topk:P shares are multiplied by P, the gamma of
  // CHOCO-SGD, because copies follow slowly and larger weights overshoot.
  double bearable(double weight) const;
  comm::Mix bearable(comm::Mix) const;
  // Call it before the first exchange, and after a change of the workers: then neither end has a copy, and
  // the first message over an edge is x itself.
  void start(Worker&, const Graph&, const Tensor& like);

  // Out-peers get the difference, and their shares of the push-sum weight w. x is free on return.
  void give(const Worker&, const comm::Mix&, comm::Tag, int64_t k, const Tensor& x, double w);
  // Waits for all in-peers: y <- x + sum_j p_ij (copy of x_j) - sum_j p_ji (copy of x there). The sum
  // of y over the workers is that of x, whatever the codec rounds off. y may be x. Returns the sum of
  // the weights taken.
  double take(Worker&, const comm::Mix&, comm::Tag, int64_t k, const Tensor& y, const Tensor& x);
  // For a symmetric graph, without x itself: d <- d + sum_j p_ij (copy of x_j - copy of x there), by pairs.
  void take_differences(Worker&, const comm::Mix&, comm::Tag, int64_t k, const Tensor& d);
  // The two halves of take(), for gossips that are late. y <- y - sum_j p_ji (copy there), after give().
  void leave(const comm::Mix&, const Tensor& y) const;
  // The share p_ij x_j that a message brings, which has come over this edge after all that were
  // sent before it.
  comm::Message share(const Worker&, const comm::Edge&, comm::Message);

  // Of one edge: what to send so that the copy there follows x, which is `codes` once they are written, or
  // the first time the copy itself.
  Tensor news(comm::Rank to, const Tensor& x, const Tensor& codes);
  Tensor codes(Device) const;  // room for them
  // The news of a peer, which come in the order in which they were sent.
  void hear(const comm::Communicator&, comm::Rank from, const comm::Message&);
  const Tensor& sent(comm::Rank to) const { return sent_.at(to).x; }
  const Tensor& received(comm::Rank from) const { return received_.at(from).x; }

  void visit(Archive&);

 private:
  struct Copy {
    Tensor x;
    int64_t known = 0;  // whether the other end has it, too
  };
  Tensor codes(const Worker&) const;  // the same, visible to peers
  double receive(const Worker&, comm::Rank from, comm::Tag, int64_t k);
  void hear(Copy&, const Tensor& payload);

  Codec codec_;
  std::map<comm::Rank, Copy> sent_, received_;
  Tensor difference_, lost_;  // scratch
};

}  // namespace skein::optim
