// The flags of gossip_avg, and everything about them that can be refused before a worker starts.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/launch/job.h"
#include "comm/average/averaging.h"
#include "comm/topology/topology.h"

namespace CLI {
class App;
}

namespace skein::apps {

struct GossipFlags {
  JobOptions job;
  std::vector<std::string> input;  // a pattern, or one name per worker
  std::string output, topology, algorithm = "push-sum", report, wire = "fp32";
  comm::TopologyOptions graph;
  int64_t size = 0, rounds = 0, seed = 1;
  double tolerance = 0;  // absolute; 0 with rounds = 0: as near as the type of the numbers allows, with room
  int repeats = 7;
  bool json = false, print_schedule = false, link_test = false;
};

void declare(CLI::App&, GossipFlags&);
// Before anything else after parsing: a flag or word that gossip_avg does not know is a BadOption.
void refuse_extras(const CLI::App&);
// After parsing. Fills in defaults that depend on others. Throws BadOption, BadFile.
void check(const CLI::App&, GossipFlags&);

// "mean{rank}.npy", 3 -> "mean3.npy"
std::string file_of(std::string pattern, int rank);
// The file or directory that a rank reads.
std::string input_of(const GossipFlags&, int rank);

// Where neither --rounds nor --tolerance is given: how near each number must come to its mean, as a share of
// its size (the mean of its absolute values). Far above what rounding leaves of fp32, or of doubles.
double relative_tolerance(const GossipFlags&, bool doubles);

// The graph of the flags over so many workers in a membership epoch. In a later epoch than the first,
// where fewer workers may not allow what was asked for (pairs of an odd number, more peers than there
// are, a file for others), it is one that any number allows: random pairs for pairwise, exponential with
// one peer for push-sum.
std::unique_ptr<comm::Topology> graph_over(const GossipFlags&, int workers, uint32_t epoch);

}  // namespace skein::apps
