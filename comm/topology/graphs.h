// The graphs that are more than a book of offsets, for the registry in topology.cc only.
#pragma once
#include "comm/topology/topology.h"

namespace skein::comm {

std::unique_ptr<Topology> base_graph(const TopologyOptions&, int world);
std::unique_ptr<Topology> random_matchings(const TopologyOptions&, int world);
std::unique_ptr<Topology> graph_file(const TopologyOptions&, int world);

// The peers per gossip that were asked for, or by default; BadOption naming how many there are if that is too
// many.
int chosen_peers(const TopologyOptions&, int available, const std::string& name, int world);
// For graphs with a number of their own: BadOption if one was asked for. `instead` says what to do.
void refuse_peers(const TopologyOptions&, const std::string& name, const std::string& instead);

}  // namespace skein::comm
