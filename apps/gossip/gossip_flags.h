// The flags of gossip_avg, with every check that can be made before a worker starts.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/launch/job.h"
#include "comm/average/averaging.h"
#include "comm/topology/topology.h"

namespace skein::apps {

// Large class: a member a flag.
struct GossipFlags {
  JobOptions job;
  std::vector<std::string> input;  // a pattern, or one name per worker
  std::string output, topology, algorithm = "push-sum", report, wire = "fp32", port_range;
  comm::TopologyOptions graph;
  int64_t size = 0, rounds = 0, seed = 1;
  double tolerance = 0;  // absolute; 0 with rounds = 0: relative_tolerance()
  int repeats = 7;
  bool json = false, print_schedule = false, link_test = false;
};

// The flags of a command line, checked, with defaults for what depends on other flags. Nothing if --help or
// --version asked for what is now printed. Throws BadOption, BadFile.
std::optional<GossipFlags> read_gossip_flags(int argc, char** argv);

// "mean{rank}.npy", 3 -> "mean3.npy"
std::string file_of(std::string pattern, int rank);
// The file or directory that a rank reads.
std::string input_of(const GossipFlags&, int rank);

// The tolerance if neither --rounds nor --tolerance is given: the largest distance of each number from
// its mean, relative to its size (the mean of its absolute values). It is far above the rounding of
// fp32, or of doubles.
double relative_tolerance(const GossipFlags&, bool doubles);

// The graph that the flags specify over so many workers in a membership epoch. After the first epoch
// fewer workers may not allow the requested graph (pairs of an odd number, more peers than there are, a
// file for other workers); then it is one that any number allows: random pairs for pairwise, exponential
// with one peer for push-sum.
std::unique_ptr<comm::Topology> graph_over(const GossipFlags&, int workers, uint32_t epoch);

}  // namespace skein::apps
