// EmbeddedJob: this process as a worker of a job, for programs other than ours.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "apps/launch/epochs.h"
#include "comm/communicator/world_of_one.h"

namespace skein::apps {

class JobWorker;

// One worker of the job that the environment describes (docs/launch.md); without one, a job of one worker.
// With JobOptions::elastic its members may die and others join while it runs. JobOptions::place is then a
// directory of this job alone, with a note that leads newcomers to it: a process that finds such a job
// running there joins it. Only one thread may use it. Throws BadOption and Error as Epochs does.
class EmbeddedJob {
 public:
  explicit EmbeddedJob(JobOptions);
  ~EmbeddedJob();
  // Leaves the job: the other workers' waits for this one fail at once. Before that it ends the workers that
  // were made here, because they use the network. Throws Error in the middle of a step.
  // A process that was forked from this one has no part in the job, and only forgets it.
  void leave();
  bool left() const { return is_forked() || (!epochs_ && !alone_); }
  bool is_forked() const;
  comm::Communicator& peers()
      const;  // throws Error after leave(), and in a process that was forked from this one
  int local_rank() const { return seat_.local_rank; }
  std::string ways() const;        // one line a peer: how it is reached
  comm::Council* council() const;  // null: the members stay the same
  bool is_later_epoch() const;     // the members have changed since the job began
  // After EpochEnds or PeerLost, where there is a council: connects with the members of the next epoch.
  // Throws as Epochs.
  void advance();
  // Calls a collective function that is no worker's, such as an average. Throws EpochEnds also for a lost
  // peer, if there is a council: it can be called again after a worker has gone on in the next epoch.
  void call(const std::function<void(comm::Communicator&)>&) const;
  // f32, for a worker; on the host where peers can read it, if it need not outlive an epoch.
  Tensor zeros(int64_t n, Device = kCpu) const;
  int changes() const { return changes_; }  // of the membership, that this process has been through
  comm::Traffic traffic() const;            // of all epochs

  // JobWorkers register here; an elastic job has one in each process. They may be destroyed on any thread.
  void enter(JobWorker&);
  void exit(JobWorker&);

 private:
  void forget();
  const Seat seat_;
  const int process_;
  const std::string place_;
  int changes_ = 0;
  comm::Traffic before_;  // in earlier epochs
  std::unique_ptr<Epochs> epochs_;
  std::unique_ptr<comm::WorldOfOne> alone_;
  std::mutex mutex_;
  std::set<JobWorker*> workers_;
};

}  // namespace skein::apps
