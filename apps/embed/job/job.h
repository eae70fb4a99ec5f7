// Job: this process among the workers of a job, for programs that are no part of ours.
#pragma once
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "apps/launch/epochs.h"
#include "comm/communicator/world_of_one.h"

namespace skein::apps {

class JobWorker;

// One worker of the job that the environment describes (docs/launch.md), or a job of its own if it describes none. For
// one thread. Throws BadOption and Error as Epochs does.
class EmbeddedJob {
 public:
  explicit EmbeddedJob(JobOptions);
  ~EmbeddedJob();
  // Takes leave of the others: what they wait for from this worker fails at once. Ends the workers that were made here
  // first, since what they keep open is the network's. Throws Error in the middle of a step.
  void leave();
  bool left() const { return !epochs_ && !alone_; }
  comm::Communicator& peers() const;  // throws Error after leave()
  int local_rank() const { return seat_.local_rank; }
  std::string ways() const;  // one line a peer: how it is reached

  // Workers make themselves known. They may be destroyed on any thread.
  void enter(JobWorker&);
  void exit(JobWorker&);

 private:
  const Seat seat_;
  std::unique_ptr<Epochs> epochs_;
  std::unique_ptr<comm::WorldOfOne> alone_;
  std::mutex mutex_;
  std::set<JobWorker*> workers_;
};

}  // namespace skein::apps
