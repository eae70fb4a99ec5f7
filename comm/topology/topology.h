// Topology: who speaks with whom at gossip q, and with what weight. Pure functions of (seed, epoch, q, rank).
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

// What rank r does in one gossip: column r of the mixing matrix W(q) (what it keeps and what it gives) and
// row r (what it will be given, each with the weight its sender uses). self + sum of out.weight = 1. Sums
// over peers run in the order of `in`, never in order of arrival.
struct Mix {
  double self = 1;
  std::vector<Edge> out, in;
};

// The same with weights that are fp32 numbers and of which each column still adds up to 1 exactly: what
// vectors are multiplied by, so that nothing drifts, however many gossips.
Mix in_fp32(Mix);

struct TopologyOptions {
  int peers = 0;          // per gossip; 0: not said, which means
  int default_peers = 1;  // so many, or as many as there are, where the graph leaves a choice
  int base = 1;           // `base` only: at most so many peers per gossip
  bool in_turn = false;   // `ring` with one peer only: the next and the previous rank alternately
  std::string file;       // `file` only
  uint64_t seed = 0;      // `random` only, together with
  int64_t epoch = 0;      // the membership epoch
};

class Topology {
 public:
  virtual ~Topology() = default;
  virtual Mix at(Rank, int64_t q) const = 0;
  virtual int64_t cycle() const = 0;  // W(q + cycle) = W(q); 0: never repeats
  virtual bool symmetric() const;     // W(q) = W(q)' at every q: out-peers are in-peers with the same weight
  virtual int peers() const { return 0; }  // per gossip; 0: not what TopologyOptions::peers could say
  int size() const { return size_; }

 protected:
  explicit Topology(int size) : size_(size) {}

 private:
  int size_;
};

struct TopologyRow {
  const char* name;    // as on the command line: hyphens
  const char* source;  // what the graph is, or where it comes from
  bool even;           // holds for an even number of workers only (and for one)
  std::unique_ptr<Topology> (*make)(const TopologyOptions&, int world);
};
const std::vector<TopologyRow>& topologies();

// `spec` is a row's name, with hyphens or underscores, or "file:PATH". With one worker every graph is the
// identity. BadOption: unknown name (with the nearest), odd world where pairs are needed, more peers than
// there are; BadFile: a file that is no column-stochastic graph of this many workers.
std::unique_ptr<Topology> make_topology(const std::string& spec, TopologyOptions, int world);

}  // namespace skein::comm
