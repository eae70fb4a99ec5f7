// The flags of gossip_avg, and everything about them that can be refused before a worker starts.
#pragma once
#include <memory>
#include <string>

#include "apps/job.h"
#include "comm/averaging.h"
#include "comm/topology.h"

namespace CLI {
class App;
}

namespace skein::apps {

struct GossipFlags {
  JobOptions job;
  std::string input, output, topology, algorithm = "push-sum", report, wire = "fp32";
  comm::TopologyOptions graph;
  int64_t size = 0, rounds = 0, seed = 1;
  double tolerance = 0;
  int repeats = 7;
  bool json = false, print_schedule = false, link_test = false;
};

void declare(CLI::App&, GossipFlags&);
// After parsing. Fills in defaults that depend on others. Throws BadOption, BadFile.
void check(const CLI::App&, GossipFlags&);

// "mean{rank}.npy", 3 -> "mean3.npy"
std::string file_of(std::string pattern, int rank);

// The graph of the flags over so many workers in a membership epoch. In a later epoch than the first, where
// fewer workers may not allow what was asked for (pairs of an odd number, more peers than there are, a file
// for others), it is one that any number allows: random pairs for pairwise, exponential with one peer for
// push-sum.
std::unique_ptr<comm::Topology> graph_over(const GossipFlags&, int workers, uint32_t epoch);

}  // namespace skein::apps
