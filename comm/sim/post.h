// Post: carries the datagrams of a simulated world between ports that are open.
#pragma once
#include <deque>
#include <unordered_map>

#include "comm/datagram_port.h"
#include "comm/sim/network.h"

namespace skein::comm::sim {

// A host's address is the number of its worker. Baton and network outlive it, and it outlives its ports.
class Post {
 public:
  Post(Baton& b, Network& n) : baton_(b), network_(n) {}
  std::unique_ptr<DatagramPort> open();

 private:
  class SimPort;
  Baton& baton_;
  Network& network_;
  std::unordered_map<int, SimPort*> ports_;
  int lowest_free_ = 1;  // or some number below it
};

}  // namespace skein::comm::sim
