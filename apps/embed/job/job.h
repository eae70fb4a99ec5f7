// EmbeddedJob: this process as a worker of a job, for programs other than ours.
#pragma once
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "apps/launch/epochs.h"
#include "comm/communicator/world_of_one.h"

namespace skein::apps {

class JobWorker;

// One worker of the job that the environment describes (docs/launch.md); without one, a job of one worker.
// Only one thread may use it. Throws BadOption and Error as Epochs does.
class EmbeddedJob {
 public:
  explicit EmbeddedJob(JobOptions);
  ~EmbeddedJob();
  // Leaves the job: the other workers' waits for this one fail at once. Before that it ends the workers that
  // were made here, because they use the network. Throws Error in the middle of a step.
  void leave();
  bool left() const { return !epochs_ && !alone_; }
  comm::Communicator& peers() const;  // throws Error after leave()
  int local_rank() const { return seat_.local_rank; }
  std::string ways() const;  // one line a peer: how it is reached

  // JobWorkers register here. They may be destroyed on any thread.
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
