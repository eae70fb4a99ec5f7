// Topology: which ranks exchange at gossip q, and with what weight. A pure function of (seed,
// epoch, q, rank).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::comm {

using Rank = int;

struct Edge {
  Rank peer;
  double weight;
  bool operator==(const Edge&) const = default;
};

// What rank r does in one gossip: column r of the mixing matrix W(q), which is what it keeps and what it
// gives, and row r, which is what it receives with its senders' weights. self + sum of out.weight = 1. Sums
// over peers run in the order of `in`, never in order of arrival.
struct Mix {
  double self = 1;
  std::vector<Edge> out, in;
};

// The same with weights that are fp32 numbers, chosen so that each column still adds up to exactly 1. Vectors
// are multiplied by these, so that nothing drifts, however many gossips there are.
Mix in_fp32(Mix);

struct TopologyOptions {
  int peers = 0;          // per gossip; 0: default_peers, or all if there are fewer
  int default_peers = 1;  // if the graph leaves a choice
  int base = 1;           // for `base`: at most so many peers per gossip
  bool in_turn = false;   // for `ring` with one peer: the next and the previous rank alternately
  std::string file;       // for `file`
  uint64_t seed = 0;      // for `random`
  int64_t epoch = 0;      // for `random`: the membership epoch
};

class Topology {
 public:
  virtual ~Topology() = default;
  virtual Mix at(Rank, int64_t q) const = 0;
  virtual int64_t cycle() const = 0;  // W(q + cycle) = W(q); 0: never repeats
  virtual bool symmetric() const;     // W(q) = W(q)' at every q: out-peers are in-peers with the same weight
  virtual int peers() const { return 0; }  // per gossip; 0: TopologyOptions::peers does not apply
  int size() const { return size_; }

 protected:
  explicit Topology(int size) : size_(size) {}

 private:
  int size_;
};

struct TopologyRow {
  const char* name;    // as on the command line, with hyphens
  const char* source;  // what the graph is, or where it comes from
  bool even;           // requires an even number of workers, or one
  std::unique_ptr<Topology> (*make)(const TopologyOptions&, int world);
};
const std::vector<TopologyRow>& topologies();

// `spec` is a row's name, with hyphens or underscores, or "file:PATH". With one worker every graph is the
// identity. Throws BadOption for an unknown name (and says the nearest), for an odd world if pairs are
// needed, and for more peers than there are; BadFile for a file that is no column-stochastic graph of
// this many workers.
std::unique_ptr<Topology> make_topology(const std::string& spec, TopologyOptions, int world);

}  // namespace skein::comm
