// What a Communicator consists of.
#pragma once
#include <atomic>
#include <map>

#include "comm/communicator/receiver.h"
#include "comm/communicator/sender.h"

namespace skein::comm {

class DeviceWay;

struct Communicator::State {
  State(Transport& t, CommunicatorOptions o, Members members, uint32_t id, std::shared_ptr<Meter> meter)
      : group(t, std::move(o), std::move(members), id, std::move(meter)) {}
  int64_t next_sequence() { return sequence++ << 24; }  // steps of one collective: 16 M messages a peer
  void complete(std::shared_ptr<Pending::Op>);          // returns when it is done
  // x <- factor * the sum of x over all ranks
  Pending sum(Communicator&, const Tensor& x, double factor, const Coding&);

  Group group;
  Sender sender{group};
  Receiver receiver{group};
  std::shared_ptr<DeviceWay> devices;            // null: collectives of GPU tensors go by way of the host
  int64_t sequence = 0;                          // of collectives
  std::map<std::vector<Rank>, int> groups_made;  // by members, which are ranks of the world
  std::atomic<bool> stop{false};                 // ends the handlers
  std::vector<Thread> handlers;
};

// How an all-reduce of x is cut: a small one goes to all in one hop, a larger one by segments. `segment`: the
// elements that each rank owns. all_reduce.cc
struct ReducePlan {
  bool small;
  int64_t segment;
};
ReducePlan reduce_plan(const Group&, const Tensor& x);

// The all-reduce of this communicator whose messages have steps from `sequence` on. all_reduce.cc
std::shared_ptr<Pending::Op> reduction(Group&, Sender&, Receiver&, int64_t sequence, const Tensor& x);
// The same, and others, by the transport as a whole. joint.cc
std::shared_ptr<Pending::Op> joint_reduction(Group&, Collectives&, int64_t sequence, const Tensor& x);
std::shared_ptr<Pending::Op> joint_combination(Group&, Collectives&, int64_t sequence, const Tensor& x,
                                               const Communicator::Combination&, Tensor& result);
std::shared_ptr<Pending::Op> joint_broadcast(Group&, Collectives&, int64_t sequence, const Tensor& x,
                                             Rank root);
std::shared_ptr<Pending::Op> joint_barrier(Group&, Collectives&, int64_t sequence);
// On the root, `all` is written when it is done; elsewhere it is null, and the operation is done at once.
std::shared_ptr<Pending::Op> joint_gather(Group&, Collectives&, int64_t sequence, const Tensor& x, Rank root,
                                          std::vector<Tensor>* all);
// The same in the bits of a codec. coded_reduce.cc
std::shared_ptr<Pending::Op> coded_reduction(Group&, Sender&, Receiver&, int64_t sequence, const Tensor& x,
                                             const Coding&);

}  // namespace skein::comm
