// What a Communicator consists of.
#pragma once
#include <atomic>
#include <map>

#include "comm/communicator/receiver.h"
#include "comm/communicator/sender.h"

namespace skein::comm {

class DeviceWay;

struct Communicator::State {
  State(Transport& t, CommunicatorOptions o, std::vector<Rank> members, uint32_t id,
        std::shared_ptr<Meter> meter)
      : group(t, std::move(o), std::move(members), id, std::move(meter)) {}
  int64_t next_sequence() { return sequence++ << 24; }  // steps of one collective: 16 M messages a peer
  // x <- factor * the sum of x over all ranks
  Pending sum(Communicator&, const Tensor& x, double factor, const Coding* = nullptr);

  Group group;
  Sender sender{group};
  Receiver receiver{group};
  std::shared_ptr<DeviceWay> devices;            // null: collectives of GPU tensors go by way of the host
  int64_t sequence = 0;                          // of collectives
  std::map<std::vector<Rank>, int> groups_made;  // by members, which are ranks of the world
  std::atomic<bool> stop{false};                 // ends the handlers
  std::vector<Thread> handlers;
};

// The all-reduce of this communicator whose messages have steps from `sequence` on. all_reduce.cc
std::shared_ptr<Pending::Op> reduction(Group&, Sender&, Receiver&, int64_t sequence, const Tensor& x);
// The same in the bits of a codec. coded_reduce.cc
std::shared_ptr<Pending::Op> coded_reduction(Group&, Sender&, Receiver&, int64_t sequence, const Tensor& x,
                                             const Coding&);

}  // namespace skein::comm
