// What gossiping strategies share: the graph their flags choose, and a gossip's two halves, give and take.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/topology.h"
#include "optim/strategy.h"

namespace skein::optim {

// The graph of --topology, --peers and --base, asked by the number of the gossip. `--peers 1@0,2@30` changes the
// number of peers at those training epochs; needs the option steps-per-epoch.
class Graph {
 public:
  // Defaults are the strategy's. BadOption as make_topology says.
  Graph(const Options&, int world, const std::string& topology, int peers);
  comm::Mix at(const Worker&, int64_t q) const;  // weights as comm::in_fp32
  bool symmetric() const;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<std::pair<int64_t, std::unique_ptr<comm::Topology>>> stages_;  // from which gossip on
};

// Sends every out-peer its share of x, and of the push-sum weight w in the header. x is free on return. The communicator
// may be null where there are no peers.
void give(comm::Communicator*, const comm::Mix&, comm::Tag, int64_t k, const Tensor& x, double w = 1);
// Waits for the shares of all in-peers; in the graph's order, whatever the order of arrival.
std::vector<comm::Message> take_shares(comm::Communicator*, const comm::Mix&, comm::Tag, int64_t k,
                                       const Tensor& like);
// y <- self * x + the shares, in order. y may be x.
void combine(const Tensor& y, double self, const Tensor& x, const std::vector<comm::Message>& shares);

// --bn-policy: `local` leaves the running statistics alone, `mix` gives them the weights x gets, `recompute`
// re-estimates them before each evaluation (the trainer's part).
enum class BufferPolicy : uint8_t { kLocal, kMix, kRecompute };
BufferPolicy buffer_policy(const Options&);

// The same three for Worker::buffers under `mix`; they do nothing under the other policies.
class BufferGossip {
 public:
  explicit BufferGossip(const Options& o) : on_(buffer_policy(o) == BufferPolicy::kMix) {}
  void give(Worker&, const comm::Mix&, int64_t k, double w = 1);  // buffers as the last forward left them
  void take(Worker&, const comm::Mix&, int64_t k);                // waits
  void combine(Worker&, double self, double w = 1);               // w: the weight after this gossip

 private:
  static constexpr comm::Tag kBuffers = 2;
  const bool on_;
  Tensor mine_;  // w times the buffers, as x is
  std::vector<comm::Message> shares_;
};

}  // namespace skein::optim
