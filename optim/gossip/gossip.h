// What gossiping strategies share: the graph that their flags choose, a gossip's two halves, and meetings.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator/communicator.h"
#include "comm/topology/topology.h"
#include "engine/vectors/mixing.h"
#include "optim/strategy.h"

namespace skein::optim {

// The graph of --topology, --peers and --base, asked by the number of the gossip. `--peers 1@0,2@30` changes
// the number of peers at those training epochs; needs the option steps-per-epoch.
class Graph {
 public:
  // Defaults are the strategy's; `in_turn` as in TopologyOptions. BadOption as make_topology says.
  Graph(const Options&, int world, const std::string& topology, int peers, bool in_turn = false);
  comm::Mix at(const Worker&, int64_t q) const;  // weights as comm::in_fp32
  bool symmetric() const;
  bool stands_still() const;         // all gossips have the same graph
  bool pairs_odd_with_even() const;  // an odd rank gives to one even rank at most, at every gossip
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<std::pair<int64_t, std::unique_ptr<comm::Topology>>> stages_;  // from which gossip on
};

// Throws BadOption unless every out-peer is an in-peer with the same weight.
void needs_symmetry(const Graph&, const std::string& algorithm);

// Sends every out-peer its share of x, and of the push-sum weight w in the header. x is free on return.
void give(comm::Communicator&, const comm::Mix&, comm::Tag, int64_t k, const Tensor& x, double w = 1);
// mix() of the messages that in-peers gave, after give() of a.x over the same edges. What a narrow wire (--wire
// bf16) rounds off the shares given stays with their sender, so that the sum over the workers does not change.
void combine(const comm::Communicator&, MixArgs a, const comm::Mix&,
             const std::vector<comm::Message>& shares);
double mean_weight(comm::Communicator&, double w);  // the mean over the workers; collective

// A gossip at every step k, in two halves between which a worker may compute. Worker i takes the share p_ij of
// in-peer j, where P(k) is the mixing matrix of the graph. Sums run in the graph's order, whatever the order of
// arrival. Under --bn-policy mix the running statistics take part, as the last forward has left them.
class Gossip {
 public:
  Gossip(const Options&, int world, const std::string& topology, int peers);  // as Graph
  const Graph& graph() const { return graph_; }

  // Out-peers get their shares of x, and of the push-sum weight w. x is free on return.
  void give(Worker&, int64_t k, const Tensor& x, double w = 1);
  // Waits for all in-peers: y <- sum_j p_ij x_j, where x is what this worker has given; y may be x.
  void take(Worker&, int64_t k, const Tensor& y, const Tensor& x);
  // Push-sum: (x, w) <- sum_j p_ij (x_j, w_j), z <- x / w.
  void take(Worker&, int64_t k, const Tensor& x, double& w, const Tensor& z);
  // x <- mean x; or, in push-sum, (x, w) <- mean (x, w), z <- x / w. Collective.
  void average(Worker&, const Tensor& x);
  void average(Worker&, const Tensor& x, double& w, const Tensor& z);

 private:
  static constexpr comm::Tag kShare = 1, kBuffers = 2;
  std::vector<comm::Message> take_shares(Worker&, comm::Tag, int64_t k, const Tensor& like) const;
  void give_buffers(Worker&, int64_t k, double w);
  void take_buffers(Worker&, int64_t k, double w);
  void average_buffers(Worker&, double w) const;
  bool mixes(const Worker& me) const { return mixes_ && me.buffers.size() > 0; }

  const Graph graph_;
  const bool mixes_;
  comm::Mix p_;     // column and row i of P(k), from give() to take()
  Tensor buffers_;  // w times the running statistics, as x is w z
};

// A meeting of workers that are at different steps. Each tells all others that it has come, and serves
// them until all have come. While a worker waits for another inside its own step, it may hear that this
// one has come.
class Meeting {
 public:
  static constexpr double kNap = 1e-3;  // seconds of a wait before it looks whether anything else has changed
  explicit Meeting(comm::Tag tag) : tag_(tag) {}
  // Returns when all have called it as often as this worker. Until then it calls `meanwhile` repeatedly.
  void meet(comm::Communicator&, const std::function<void()>& meanwhile);
  bool has_come(comm::Communicator&, comm::Rank);  // to this worker's next meeting; never waits

 private:
  const comm::Tag tag_;
  int64_t round_ = 0;
  std::vector<bool> here_;
};

}  // namespace skein::optim
