// What gossiping strategies share: the graph that their flags choose, and a gossip's two halves.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator/communicator.h"
#include "engine/vectors/mixing.h"
#include "optim/gossip/edge_copies.h"
#include "optim/gossip/graph.h"

namespace skein::optim {

// Sends every out-peer its share of x, and of the push-sum weight w in the header. x is free on return.
void give(comm::Communicator&, const comm::Mix&, comm::Tag, int64_t k, const Tensor& x, double w = 1);
// mix() of the messages that in-peers gave, after give() of a.x over the same edges. What a narrow wire
// (--wire bf16) rounds off the shares given stays with their sender, so that the sum over the workers
// does not change.
void combine(const comm::Communicator&, MixArgs a, const comm::Mix&,
             const std::vector<comm::Message>& shares);
double mean_weight(comm::Communicator&, double w);  // the mean over the workers; collective

// A gossip at every step k, in two halves between which a worker may compute. Worker i takes the share p_ij
// of in-peer j, where P(k) is the mixing matrix of the graph. Sums run in the graph's order, whatever the
// order of arrival. Under --bn-policy mix the running statistics take part, as the last forward has left
// them. With a codec (--wire) differences travel, and the rounding error stays with the sender of x.
class Gossip {
 public:
  // As Graph.
  Gossip(const Options&, int world, const std::string& topology, int peers, int64_t every = 1);
  const Graph& graph() const { return graph_; }
  // Call it before the first gossip. `like` has the size and the device of what is given.
  void start(Worker& me, const Tensor& like) { copies_.start(me, graph_, like); }
  void visit(Archive& a) { copies_.visit(a); }

  // Out-peers get their shares of x, and of the push-sum weight w. x is free on return.
  void give(Worker&, int64_t k, const Tensor& x, double w = 1);
  // Waits for all in-peers: y <- sum_j p_ij x_j, where x is what this worker has given; y may be x.
  void take(Worker&, int64_t k, const Tensor& y, const Tensor& x);
  // Waits for all in-peers of a symmetric graph: d <- sum_j p_ij (x_j - x_i), pair by pair, so that what one
  // worker of a pair gains the other loses, bit for bit.
  void take_differences(Worker&, int64_t k, const Tensor& d, const Tensor& x);
  // Push-sum: (x, w) <- sum_j p_ij (x_j, w_j), z <- x / w.
  void take(Worker&, int64_t k, const Tensor& x, double& w, const Tensor& z);
  // x <- mean x; or, in push-sum, (x, w) <- mean (x, w), z <- x / w. Collective.
  void average(Worker&, const Tensor& x);
  void average(Worker&, const Tensor& x, double& w, const Tensor& z);

 private:
  static constexpr comm::Tag kShare = comm::kRounds | 1, kBuffers = comm::kRounds | 2;
  std::vector<comm::Message> take_shares(Worker&, comm::Tag, int64_t k, const Tensor& like) const;
  void give_buffers(Worker&, int64_t k, double w);
  void take_buffers(Worker&, int64_t k, double w);
  void average_buffers(Worker&, double w) const;
  bool mixes(const Worker& me) const { return mixes_ && me.buffers.size() > 0; }

  const Graph graph_;
  const bool mixes_;
  EdgeCopies copies_;
  comm::Mix p_;     // column and row i of P(k), from give() to take()
  Tensor buffers_;  // w times the running statistics, as x is w z
};

}  // namespace skein::optim
