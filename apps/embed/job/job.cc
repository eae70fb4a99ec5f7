// Takes ranks from the environment. Signals, launchers and exit statuses are left to the program.
#include "apps/embed/job/job.h"

#include <unistd.h>

#include <algorithm>

#include "apps/embed/job/job_worker.h"
#include "apps/launch/membership_note.h"
#include "comm/membership/council.h"
#include "engine/version.h"

namespace skein::apps {

EmbeddedJob::EmbeddedJob(JobOptions o)
    : seat_(seat_from_environment()), process_(::getpid()), place_(o.place) {
  o.identity = text("skein ", version(), " in another program");
  if (o.elastic && has_running_job(o.place)) o.join = o.place;
  if (!o.join.empty() || (seat_.told && seat_.world > 1)) {
    epochs_ = std::make_unique<Epochs>(o, seat_);
    if (council()) epochs_->place().announce(place_);
  } else {
    alone_ = std::make_unique<comm::WorldOfOne>(comm::CommunicatorOptions{
        .deadline = o.deadline, .wire = o.wire, .key = comm::Secret::random(comm::kJobKeyBytes)});
  }
}

EmbeddedJob::~EmbeddedJob() {
  if (is_forked()) forget();
}

bool EmbeddedJob::is_forked() const { return ::getpid() != process_; }

// The connections are the other process's, and so are the threads that would have to end first.
void EmbeddedJob::forget() {
  for (JobWorker* w : workers_) w->forget();
  (void)epochs_.release(), (void)alone_.release();
}

void EmbeddedJob::leave() {
  if (is_forked()) return forget();
  {
    const std::lock_guard lock(mutex_);
    for (const JobWorker* w : workers_)
      if (w->in_step()) throw Error("a job cannot be left in the middle of a step: let its gradient fail");
    for (JobWorker* w : workers_) w->end();
  }
  if (epochs_) epochs_->end();
  epochs_.reset(), alone_.reset();
}

void EmbeddedJob::enter(JobWorker& w) {
  const std::lock_guard lock(mutex_);
  if (council() && !workers_.empty())
    throw BadOption(
        "an elastic job has one worker in each process: newcomers would not know what the others have made");
  workers_.insert(&w);
}

void EmbeddedJob::exit(JobWorker& w) {
  const std::lock_guard lock(mutex_);
  workers_.erase(&w);
}

comm::Communicator& EmbeddedJob::peers() const {
  if (is_forked())
    throw Error(
        "this process was forked from a worker, and is none itself: only the process that joined a job can "
        "use it");
  if (epochs_) return epochs_->communicator();
  if (alone_) return *alone_;
  throw Error("this job has been left; make another one in a new process");
}

std::string EmbeddedJob::ways() const { return epochs_ ? epochs_->place().ways : ""; }
comm::Council* EmbeddedJob::council() const { return epochs_ ? epochs_->place().council : nullptr; }

bool EmbeddedJob::is_later_epoch() const { return council() && council()->now().epoch > 1; }

void EmbeddedJob::advance() {
  before_ = traffic();
  epochs_->advance();
  ++changes_;
  epochs_->place().announce(place_);
}

void EmbeddedJob::call(const std::function<void(comm::Communicator&)>& f) const try {
  f(peers());
} catch (const comm::PeerLost& e) {
  if (!council()) throw;
  throw comm::EpochEnds(e.what());
}

Tensor EmbeddedJob::zeros(int64_t n, Device d) const {
  if (!d.is_host()) return Tensor::zeros({n}, kF32, d);
  const Tensor t = council() ? Tensor({n}) : Tensor({n}, kF32, peers().allocator());
  if (n > 0) std::fill_n(t.data<float>(), n, 0.f);
  return t;
}

comm::Traffic EmbeddedJob::traffic() const {
  comm::Traffic t = peers().meter().traffic();
  t.messages += before_.messages, t.bytes += before_.bytes;
  t.waited += before_.waited, t.in_flight += before_.in_flight;
  return t;
}

}  // namespace skein::apps
