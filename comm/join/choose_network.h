// Which network ranks of different hosts speak over: all are tried, the fastest is kept.
#pragma once
#include <string>
#include <vector>

#include "comm/transport.h"

namespace skein::comm {

struct NetworkChoice {
  std::string devices;                 // what UCX is to use, "eth0"; empty: whatever it finds
  std::vector<std::string> addresses;  // of this host for others to dial, the chosen one first
  std::string why;                     // one line: what was taken, what else there was, and how fast each is
};

// Collective. `host[r]`: equal numbers for ranks of one host; there are at least two hosts. Each host's first
// rank sends a few megabytes to every address of the next host's, for a quarter of a second each at most; a
// network is as fast as the slowest of these links. Nothing is measured where there is no choice. With
// TransportOptions::interface that one is taken unseen, and BadOption says what there is if it is not here.
// UCX_NET_DEVICES in the environment goes over all.
NetworkChoice choose_network(Exchange&, const std::vector<int>& host, const TransportOptions&);

// What the hosts' measurements add up to; one way to count for all ranks. Apart so that it can be tested.
struct Candidate {
  std::string name, address, network;
  int64_t declared = -1;  // Mbit/s by the driver's word
  double measured = 0;    // Mbit/s from the host before; 0: it could not be reached
};
// For each host the index of the candidate taken, -1 if none answered: of the network that every host is on
// and that has the fastest slowest link (links within a tenth of each other count as equal: then what the
// drivers declare decides, then the first host's order); if they have none in common, each host's own
// fastest.
std::vector<int> fastest(const std::vector<std::vector<Candidate>>& of_hosts);

}  // namespace skein::comm
