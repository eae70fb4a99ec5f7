// Ways: by what each peer of a process is reached.
#pragma once
#include <string>
#include <vector>

#include "comm/join/choose_network.h"

namespace skein::comm {

struct Ways {
  std::vector<int> domains;    // of each rank: equal for ranks of one host and user
  std::vector<Rank> shared;    // peers reached through shared memory,
  std::vector<Rank> tcp, ucx;  // by TCP, by UCX; one of the two is empty
  bool opens_shared = false;   // the same on all ranks, as the next
  bool opens_ucx = false;      // for the peers above, or for payloads on GPUs of this host
  std::string gpu_trouble;     // why those do not go by UCX, the same on all ranks
  bool one_host = true;
  NetworkChoice network;  // to dial and to listen at
};
// Collective. Throws BadOption for a wish that cannot be granted.
Ways choose_ways(Exchange&, const TransportOptions&, Refusals::Counter& strangers);

}  // namespace skein::comm
