// A meeting's messages.
#include "optim/gossip/meeting.h"

namespace skein::optim {
namespace {

constexpr comm::Rank kChildren = 8;  // of a rank in the tree

}  // namespace

void Meeting::meet(comm::Communicator& comm, const std::function<void()>& meanwhile) {
  const int64_t all_below = 2 * round_, all = all_below + 1;  // have come: told upwards, told downwards
  ++round_;
  const comm::Rank me = comm.rank(), parent = (me - 1) / kChildren;
  const comm::Rank first = std::min(kChildren * me + 1, comm.size()),
                   last = std::min(first + kChildren, comm.size());
  const auto tell = [&](comm::Rank to, int64_t what) { comm.push(to, tag_, what, 1, Tensor::zeros({1})); };
  const auto hear = [&](comm::Rank from, int64_t what) {
    const auto began = comm::Clock::now();
    while (!comm.poll(from, tag_, what)) {
      meanwhile();
      if (comm.take_within(nap(comm::seconds_since(began)), from, tag_, what)) return;
    }
  };
  for (comm::Rank child = first; child < last; ++child) hear(child, all_below);
  if (me > 0) tell(parent, all_below), hear(parent, all);
  for (comm::Rank child = first; child < last; ++child) tell(child, all);
}

}  // namespace skein::optim
