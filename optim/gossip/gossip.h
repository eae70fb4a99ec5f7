// What gossiping strategies share: the graph their flags choose, a gossip's two halves, give and
// take, and meetings.
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
  bool pairs_odd_with_even() const;  // an odd rank gives to one even rank at most, at every gossip
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<std::pair<int64_t, std::unique_ptr<comm::Topology>>> stages_;  // from which gossip on
};

// Sends every out-peer its share of x, and of the push-sum weight w in the header. x is free on return.
void give(comm::Communicator&, const comm::Mix&, comm::Tag, int64_t k, const Tensor& x, double w = 1);
// Waits for the shares of all in-peers; in the graph's order, whatever the order of arrival. Payloads are of
// the type they travelled in.
std::vector<comm::Message> take_shares(comm::Communicator&, const comm::Mix&, comm::Tag, int64_t k,
                                       const Tensor& like);
// mix() of what take_shares() brought, after give() of a.x over the same edges. What a narrow wire (--wire
// bf16) rounds off the shares given stays with their sender, so that the sum over the workers
// does not change.
void combine(const comm::Communicator&, MixArgs a, const comm::Mix&,
             const std::vector<comm::Message>& shares);

// A meeting of workers that are at different steps. Each tells all others that it has come, and serves
// them until all have come. While a worker waits for another inside its own step, it may hear that this
// one has come.
class Meeting {
 public:
  explicit Meeting(comm::Tag tag) : tag_(tag) {}
  // Returns when all have called it as often as this worker. Until then it calls `meanwhile` repeatedly.
  void meet(comm::Communicator&, const std::function<void()>& meanwhile);
  bool has_come(comm::Communicator&, comm::Rank);  // to this worker's next meeting; never waits

 private:
  const comm::Tag tag_;
  int64_t round_ = 0;
  std::vector<bool> here_;
};

// The same for Worker::buffers under `--bn-policy mix`. With the other policies it does nothing.
class BufferGossip {
 public:
  explicit BufferGossip(const Options& o) : on_(buffer_policy(o) == BufferPolicy::kMix) {}
  void give(Worker&, const comm::Mix&, int64_t k, double w = 1);  // buffers as the last forward left them
  // Waits for the shares of all in-peers. `w` is the push-sum weight after this gossip.
  void take_and_combine(Worker&, const comm::Mix&, int64_t k, double w = 1);
  void average(Worker&, double w = 1);  // `w` is this worker's weight; collective

 private:
  static constexpr comm::Tag kBuffers = 2;
  const bool on_;
  Tensor mine_;  // w times the buffers, as x is
};

}  // namespace skein::optim
