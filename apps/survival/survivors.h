// Survivors: the workers that are left of a run whose algorithm continues without lost workers.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::apps {

// When the network splits, each side finds the other silent, and only one may write a checkpoint: the one
// with more than half of the workers that may be alive or, of two halves, the one with the lowest worker.
// `members` are the workers of this side, in order; `ended` says of each worker whether its end was seen, so
// that it is on neither side.
bool may_write(const std::vector<int>& members, const std::vector<bool>& ended);

// Worker 0 decides which workers are left and tells the others, so that all try again with the same set; its
// own loss ends the run. What workers do together is tried again when one of them is lost meanwhile. So it
// must be repeatable, and its visible effects (events, lines) belong after it.
class Survivors {
 public:
  // Without `survives` every loss is thrown, and nothing is tried again. `hub` has all workers
  // and, last, their server.
  Survivors(comm::Communicator& everybody, bool survives) : Survivors(everybody, everybody, survives) {}
  Survivors(comm::Communicator& everybody, comm::Communicator& hub, bool survives);

  comm::Communicator& comm() const { return groups_.empty() ? everybody_ : *groups_.back(); }
  comm::Communicator& everybody() const { return everybody_; }
  // comm() and, last, the server, if there is one.
  comm::Communicator& hub() const { return &hub_ == &everybody_ ? comm() : hub_; }
  bool survives() const { return survives_; }
  std::vector<int> lost() const;                       // workers that are not in comm()
  int changes() const { return int(groups_.size()); }  // how often comm() has changed so far

  // From now on each worker calls f before the first attempt with a changed set of workers.
  void when_fewer(std::function<void()> f) { when_fewer_ = std::move(f); }

  // Runs f, which is collective over comm(), and repeats it if a loss interrupts it. Some workers may
  // return while others try again. Throws PeerLost if no worker is lost, if worker 0 is, or if the run
  // does not survive it.
  void meet(const std::function<void()>& f);
  // The same, but it returns on no worker before f is done on all of comm().
  void wholly(const std::function<void()>& f);

 private:
  bool first() const { return everybody_.rank() == 0; }
  bool attempt(const std::function<void()>& f);
  bool again(bool done);
  std::vector<int> left() const;
  void tell(const std::vector<int>& left);
  std::vector<int> hear();

  comm::Communicator &everybody_, &hub_;
  const bool survives_;
  std::vector<int> members_;                                 // the workers in comm()
  std::unique_ptr<comm::Communicator> line_;                 // between worker 0 and each other worker
  std::vector<std::unique_ptr<comm::Communicator>> groups_;  // late workers may still send in an older one
  int64_t verdicts_ = 0;
  std::function<void()> when_fewer_;
  int told_ = 0;  // changes() when when_fewer_ was last called
};

}  // namespace skein::apps
