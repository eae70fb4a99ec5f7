// Takes ranks from the environment. Signals, launchers and exit statuses are left to the program.
#include "apps/embed/job/job.h"

#include "apps/embed/job/job_worker.h"

namespace skein::apps {

EmbeddedJob::EmbeddedJob(JobOptions o) : seat_(seat_from_environment()) {
  if (seat_.told && seat_.world > 1)
    epochs_ = std::make_unique<Epochs>(o, seat_);
  else
    alone_ = std::make_unique<comm::WorldOfOne>(comm::CommunicatorOptions{
        .deadline = o.deadline, .wire = o.wire, .key = comm::Secret::random(comm::kJobKeyBytes)});
}

EmbeddedJob::~EmbeddedJob() = default;

void EmbeddedJob::leave() {
  {
    const std::lock_guard lock(mutex_);
    for (const JobWorker* w : workers_)
      if (w->in_step()) throw Error("a job cannot be left in the middle of a step: let its gradient fail");
    for (JobWorker* w : workers_) w->end();
  }
  epochs_.reset(), alone_.reset();
}

void EmbeddedJob::enter(JobWorker& w) {
  const std::lock_guard lock(mutex_);
  workers_.insert(&w);
}

void EmbeddedJob::exit(JobWorker& w) {
  const std::lock_guard lock(mutex_);
  workers_.erase(&w);
}

comm::Communicator& EmbeddedJob::peers() const {
  if (epochs_) return epochs_->communicator();
  if (alone_) return *alone_;
  throw Error("this job has been left; make another one in a new process");
}

std::string EmbeddedJob::ways() const { return epochs_ ? epochs_->place().ways : ""; }

}  // namespace skein::apps
