// What gossip sends in the bits of a codec: x minus what the receiver has of it already. Both ends of an edge keep a copy
// of that, so what the codec rounds off is part of the next difference, and no model is coded. After CHOCO-SGD: Koloskova,
// Stich & Jaggi, ICML 2019, with a copy an edge in the place of one a neighbour.
#pragma once
#include <map>

#include "comm/topology/topology.h"
#include "comm/transport.h"
#include "engine/vectors/codec.h"
#include "optim/gossip/graph.h"

namespace skein::optim {

// One thread. Memory: as many vectors as a worker has in- and out-peers at any gossip, and two.
class EdgeCopies {
 public:
  explicit EdgeCopies(const Options&);  // --wire
  explicit operator bool() const { return bool(codec_); }
  // The weights that a gossip with this codec bears: of topk:P only that part of every share, gamma of CHOCO-SGD, since
  // copies that follow slowly would be overshot.
  comm::Mix bearable(comm::Mix) const;
  // Before the first exchange, or after a change of the workers: neither end has a copy yet. The first message over an
  // edge is x itself.
  void start(Worker&, const Graph&, const Tensor& like);

  // Out-peers get the difference, and their shares of the push-sum weight w. x is free on return.
  void give(Worker&, const comm::Mix&, comm::Tag, int64_t k, const Tensor& x, double w);
  // Waits for all in-peers: y <- x + sum_j p_ij (copy of x_j) - sum_j p_ji (copy of x there). Its sum over the workers is
  // that of x, whatever the codec has rounded off. y may be x. Returns the weights taken, added up.
  double take(Worker&, const comm::Mix&, comm::Tag, int64_t k, const Tensor& y, const Tensor& x);
  // The same of a symmetric graph without x itself: d <- d + sum_j p_ij (copy of x_j - copy of x there), pair by pair.
  void take_differences(Worker&, const comm::Mix&, comm::Tag, int64_t k, const Tensor& d);
  void visit(Archive&);

 private:
  struct Copy {
    Tensor x;
    int64_t known = 0;  // whether the other end has it, too
  };
  Tensor blank(const Worker&) const;  // for codes
  double receive(Worker&, comm::Rank from, comm::Tag, int64_t k);

  Codec codec_;
  std::map<comm::Rank, Copy> sent_, received_;
  Tensor difference_, lost_;  // scratch
};

}  // namespace skein::optim
