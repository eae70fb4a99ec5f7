// A dedicated server: how workers reach it, what its process keeps, and how long it serves.
#pragma once
#include <functional>

#include "comm/communicator/communicator.h"
#include "optim/strategy.h"

namespace skein::optim {

struct Served {
  std::function<void()> meanwhile = {};  // called again and again, between turns
  Tensor center = {};                    // as it was left, with what is kept with it; empty: there was none
  int64_t version = 0;
};

// A strategy that can have a server beside the workers (--servers dedicated). `hub`: the workers and,
// last, this server.
class WithServer {
 public:
  virtual ~WithServer() = default;
  // On a worker, before start(), if there is such a server.
  void reach(comm::Communicator& hub) { hub_ = &hub; }
  // All that the server does, with a strategy that is not started, until no worker is left or
  // the membership changes.
  virtual void serve(comm::Communicator& hub, Served&) = 0;

 protected:
  // The workers and the server; the workers alone where worker 0 serves.
  comm::Communicator& hub_of(Worker& me) const { return hub_ ? *hub_ : me.comm; }

 private:
  comm::Communicator* hub_ = nullptr;
};
inline WithServer& with_server(Strategy& s) { return dynamic_cast<WithServer&>(s); }

// Whether any worker is left and the membership stays. `hub`: the workers and, last, this server.
inline bool goes_on(comm::Communicator& hub, const Served& kept) {
  if (hub.transport().mailbox().epoch_ends()) return false;
  if (kept.meanwhile) kept.meanwhile();
  for (comm::Rank w = 0; w < hub.rank(); ++w)
    if (hub.membership().alive(hub.world_rank(w))) return true;
  return false;
}

}  // namespace skein::optim
