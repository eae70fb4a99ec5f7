// The graph that the flags of gossip choose.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/topology/topology.h"
#include "optim/strategy.h"

namespace skein::optim {

// The out- and in-peers that a rank has at any gossip.
struct Neighbors {
  std::set<comm::Rank> out, in;
};

// The graph of --topology, --peers and --base, asked by the number of the gossip. `--peers 1@0,2@30` changes
// the number of peers at those training epochs; needs the option steps-per-epoch.
class Graph {
 public:
  // Defaults are the strategy's; `in_turn` as in TopologyOptions; a gossip comes every so many steps.
  // BadOption as make_topology says.
  Graph(const Options&, int world, const std::string& topology, int peers, bool in_turn = false,
        int64_t every = 1);
  comm::Mix at(const Worker&, int64_t q) const;  // weights as comm::in_fp32
  bool symmetric() const;
  bool stands_still() const;  // all gossips have the same graph
  Neighbors neighbors(comm::Rank) const;
  bool pairs_odd_with_even() const;  // an odd rank gives to one even rank at most, at every gossip
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<std::pair<int64_t, std::unique_ptr<comm::Topology>>> stages_;  // from which gossip on
};

// Throws BadOption unless every out-peer is an in-peer with the same weight.
void needs_symmetry(const Graph&, const std::string& algorithm);

}  // namespace skein::optim
