// Survivors: the workers of a run that are still there, where the algorithm continues without
// those that are lost.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::apps {

// After a cut cable each side finds the other silent, and only one may write a checkpoint: that with more
// than half of those who may be alive or, of two halves, that with the lowest of them. `members`: workers of
// this side, in order; `ended`: by worker, whether its end was seen, so that it is on no side.
bool may_write(const std::vector<int>& members, const std::vector<bool>& ended);

// Worker 0 decides who is there and tells the others, so that all try again among the same; its own loss ends
// the run. What workers do together is tried again when one of them is lost meanwhile. It must therefore bear
// being done twice, and what it tells the world (events, lines) belongs behind it.
class Survivors {
 public:
  // `survives`: false, every loss is thrown, and nothing is tried again. `hub`: everybody
  // and, last, their server.
  Survivors(comm::Communicator& everybody, bool survives) : Survivors(everybody, everybody, survives) {}
  Survivors(comm::Communicator& everybody, comm::Communicator& hub, bool survives);

  comm::Communicator& comm() const { return groups_.empty() ? everybody_ : *groups_.back(); }
  comm::Communicator& everybody() const { return everybody_; }
  // comm() and, last, the server, where there is one.
  comm::Communicator& hub() const { return &hub_ == &everybody_ ? comm() : hub_; }
  bool survives() const { return survives_; }
  std::vector<int> lost() const;                       // workers that are not in comm()
  int changes() const { return int(groups_.size()); }  // of comm(), so far

  // From now on f is called before the first attempt of other workers than before, by each of them.
  void when_fewer(std::function<void()> f) { when_fewer_ = std::move(f); }

  // f, which is collective over comm(); again if a loss interrupts it. Some may return from it while others
  // try again. Throws PeerLost where no worker is lost, or worker 0 is, or the run does not survive it.
  void meet(const std::function<void()>& f);
  // Likewise, but it returns on no worker before f is done on all of comm().
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
  std::vector<int> members_;                                 // of comm(), as workers
  std::unique_ptr<comm::Communicator> line_;                 // between worker 0 and each other
  std::vector<std::unique_ptr<comm::Communicator>> groups_;  // who is late may still speak in an older one
  int64_t verdicts_ = 0;
  std::function<void()> when_fewer_;
  int told_ = 0;  // changes() when it was called last
};

}  // namespace skein::apps
