// Job: this process among the workers of a job, for programs that are no part of ours.
#pragma once
#include <memory>
#include <string>

#include "apps/launch/epochs.h"
#include "comm/communicator/world_of_one.h"

namespace skein::apps {

// One worker of the job that the environment describes (docs/launch.md), or a job of its own if it describes none. For
// one thread. Throws BadOption and Error as Epochs does.
class EmbeddedJob {
 public:
  explicit EmbeddedJob(JobOptions);
  // Takes leave of the others: what they wait for from this worker fails at once.
  void leave() { epochs_.reset(), alone_.reset(); }
  bool left() const { return !epochs_ && !alone_; }
  comm::Communicator& peers() const;  // throws Error after leave()
  int local_rank() const { return seat_.local_rank; }
  std::string ways() const;  // one line a peer: how it is reached

 private:
  const Seat seat_;
  std::unique_ptr<Epochs> epochs_;
  std::unique_ptr<comm::WorldOfOne> alone_;
};

}  // namespace skein::apps
