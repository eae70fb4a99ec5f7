// Choosing the network between hosts: all are tried, and the fastest is used.
#pragma once
#include <string>
#include <vector>

#include "comm/refusals.h"
#include "comm/transport.h"

namespace skein::comm {

struct NetworkChoice {
  std::string listen;                  // the address to listen at; empty: none was chosen, so at all of them
  std::vector<std::string> addresses;  // this host's, for others to dial; the chosen one alone, or all
  std::string why;                     // one line: what was chosen, what else there was, and how fast each is
};

// Collective. `host[r]` is equal for ranks of one host; there are at least two hosts. The first rank of each
// host sends a few megabytes to every address of the next host, for at most a quarter of a second each. A
// network is as fast as the slowest of these links. Nothing is measured if there is no choice.
// TransportOptions::interface is used without measuring; if this host does not have it, BadOption lists those
// it has. UCX_NET_DEVICES in the environment takes precedence over everything, unless it is `all`; of several
// interfaces in it, the first that this host has is used. Callers at the measurements that are not of this
// job are counted in `strangers`.
NetworkChoice choose_network(Exchange&, const std::vector<int>& host, const TransportOptions&,
                             Refusals::Counter& strangers);

// The decision on the hosts' measurements, which is a pure function.
struct Candidate {
  std::string name, address, network;
  int64_t declared = -1;  // Mbit/s, as the driver says
  double measured = 0;    // Mbit/s from the previous host; 0: it could not be reached
};
// What a rank tells the others about its networks.
struct NetworkCard {
  int port = 0;       // at which it listens while they measure
  bool told = false;  // its user has chosen an interface
  std::vector<Candidate> candidates;

  std::string write() const;
  static NetworkCard read(const std::string& words);  // throws Error
};
// Returns for each host the index of the chosen candidate, -1 if none answered. Among the networks that every
// host is on, it chooses the one whose slowest link is fastest. Links within a tenth of each other count as
// equal; then the declared rates decide, then the first host's order. If the hosts have no network in common,
// each gets its own fastest.
std::vector<int> fastest(const std::vector<std::vector<Candidate>>& of_hosts);

}  // namespace skein::comm
