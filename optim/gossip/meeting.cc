// A meeting's messages.
#include "optim/gossip/meeting.h"

namespace skein::optim {

void Meeting::meet(comm::Communicator& comm, const std::function<void()>& meanwhile) {
  for (comm::Rank r = 0; r < comm.size(); ++r)
    if (r != comm.rank()) comm.push(r, tag_, round_, 1, Tensor::zeros({1}));
  for (comm::Rank r = 0; r < comm.size(); ++r)
    while (!has_come(comm, r)) {
      meanwhile();
      if (!has_come(comm, r)) here_[size_t(r)] = comm.take_within(kNap, r, tag_, round_).has_value();
    }
  here_.clear();
  ++round_;
}

bool Meeting::has_come(comm::Communicator& comm, comm::Rank r) {
  if (here_.empty()) here_.resize(size_t(comm.size())), here_[size_t(comm.rank())] = true;
  if (!here_[size_t(r)]) here_[size_t(r)] = comm.poll(r, tag_, round_).has_value();
  return here_[size_t(r)];
}

}  // namespace skein::optim
