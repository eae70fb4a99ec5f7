// The graphs that need more than a list of offsets, for the registry in topology.cc only.
#pragma once
#include "comm/topology/topology.h"

namespace skein::comm {

std::unique_ptr<Topology> base_graph(const TopologyOptions&, int world);
std::unique_ptr<Topology> random_matchings(const TopologyOptions&, int world);
std::unique_ptr<Topology> graph_file(const TopologyOptions&, int world);

// The peers per gossip that the options ask for, or the default. If that is too many, throws BadOption, which
// says how many there are.
int chosen_peers(const TopologyOptions&, int available, const std::string& name, int world);
// For graphs that set the number of peers themselves: throws BadOption if the options give one. `instead`
// says what to do.
void refuse_peers(const TopologyOptions&, const std::string& name, const std::string& instead);

}  // namespace skein::comm
