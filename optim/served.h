// Served: what the process of a dedicated server keeps, and how long it serves.
#pragma once
#include <functional>

#include "comm/communicator/communicator.h"

namespace skein::optim {

struct Served {
  std::function<void()> meanwhile = {};  // called again and again, between turns
  Tensor center = {};                    // as it was left, with what is kept with it; empty: there was none
  int64_t version = 0;
};

// Whether any worker is left and the membership stays. `hub`: the workers and, last, this server.
inline bool goes_on(comm::Communicator& hub, const Served& kept) {
  if (hub.transport().mailbox().epoch_ends()) return false;
  if (kept.meanwhile) kept.meanwhile();
  for (comm::Rank w = 0; w < hub.rank(); ++w)
    if (hub.membership().alive(hub.world_rank(w))) return true;
  return false;
}

}  // namespace skein::optim
