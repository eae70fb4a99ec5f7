// A worker's calls, which go on when the membership changes. All workers write and read
// a checkpoint together.
#include "apps/embed/job/job_worker.h"

#include <algorithm>

#include "apps/base/together.h"
#include "apps/checkpoint/reshare.h"
#include "apps/embed/calls.h"
#include "comm/membership/council.h"
#include "nn/slices.h"

namespace skein::apps {
namespace {

// By all workers together; if one cannot, none of the checkpoint is left.
void write_together(Checkpoints& checkpoints, comm::Communicator& all, VectorWorker& w, const Identity& id) {
  const int64_t k = w.steps();
  const auto first = [&](const auto& f) {
    together(all, [&] {
      if (all.rank() == 0) f();
    });
  };
  try {
    first([&] { checkpoints.begin(k); });
    together(all, [&] { checkpoints.write(k, all.rank(), [&](Archive& a) { w.visit(a); }); });
    first([&] { checkpoints.commit(k, id); });
  } catch (const Error&) {
    if (all.rank() == 0) checkpoints.abandon(k);
    throw;
  }
}

// Another number of workers goes on as reshare.h has it.
void read_together(const std::string& path, comm::Communicator& all, VectorWorker& w, const Identity& id) {
  together(all, [&] {
    const std::string checkpoint = find_checkpoint(path);
    const bool as_many = read_sound_manifest(checkpoint).identity.world == all.size();
    (as_many ? load_checkpoint : load_reshared)(checkpoint, all.rank(), id, [&](Archive& a) { w.visit(a); });
  });
}

}  // namespace

JobWorker::JobWorker(std::shared_ptr<EmbeddedJob> job, const WorkerVectors& v, const JobWorkerOptions& o)
    : job_(std::move(job)),
      vectors_(v),
      o_(o),
      slices_(v.g, o.sizes.empty() ? std::vector<int64_t>{v.g.size()} : o.sizes,
              nn::slice_bytes_for(v.g.bytes())),
      joins_(job_->is_later_epoch()) {
  job_->enter(*this);
  try {
    job_->council() ? follow_from({}) : make({});
  } catch (...) {
    job_->exit(*this);
    if (joins_) job_->leave();  // the members go on without this worker
    throw;
  }
  taken_ = worker_->steps();
}

// Into the next epoch.
void JobWorker::follow() {
  const comm::View next = job_->council()->next(job_->peers().options().deadline);
  const std::optional<optim::Snapshot> own = present().state_before(next.step);
  slices_.abandon(), worker_.reset();
  job_->advance();
  follow_from(own);
}

// Its membership may change before all have begun it.
void JobWorker::follow_from(const std::optional<optim::Snapshot>& own) {
  for (;;) {
    try {
      return make(own);
    } catch (const comm::EpochEnds&) {
    } catch (const comm::PeerLost&) {}
    worker_.reset();
    job_->advance();
  }
}

// What all workers do together, again among those that are left if the membership changes meanwhile. First
// come the steps that the caller has seen and that were taken back.
template <class F>
auto JobWorker::through_changes(Call call, const F& f) {
  for (;;) {
    try {
      while (gradient_ && present().steps() < taken_) agree(Call::kStep), take_step();
      agree(call);
      return f();
    } catch (const comm::EpochEnds&) {
    } catch (const comm::PeerLost&) {
      if (!job_->council()) throw;
    }
    follow();
  }
}

// After a change some may be at a call that others have completed, or that a newcomer has never come to. They
// all repeat it, the earliest first, until everybody is at a step.
void JobWorker::agree(Call mine) {
  comm::Communicator& all = job_->peers();
  constexpr double kNone = 1e9;
  while (!agreed_) {
    const double at = mine == Call::kStep ? kNone : calls_;
    const auto told = comm::gather_numbers(all, {at, double(mine)});
    const auto first =
        std::min_element(told.begin(), told.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
    if ((*first)[0] == kNone) break;
    const Call call = Call(int((*first)[1]));
    if (call == Call::kSave || call == Call::kLoad) {
      const int teller = int(first - told.begin());
      path_ = comm::broadcast_text(all, path_, teller);
      keep_ = int(comm::gather_numbers(all, {double(keep_)})[size_t(teller)][0]);
    }
    if (at == (*first)[0]) return;
    take_part(call);
  }
  if (mine == Call::kStep) agreed_ = true;
}

void JobWorker::take_part(Call call) {
  if (call == Call::kShow) return show_to_all(), present().hide_model();
  if (call == Call::kSave) return write_checkpoint();
  if (call == Call::kLoad) return read_checkpoint();
  std::optional<double> apart;
  finish_with_all(apart);
  throw comm::RunEnded({.step = present().steps()});
}

JobWorker::~JobWorker() {
  if (job_->is_forked()) forget();
  job_->exit(*this);
}

VectorWorker& JobWorker::present() const {
  (void)job_->peers();  // throws after leave(), and in another process
  if (!worker_) throw Error("this worker's job has been left");
  return *worker_;
}

double JobWorker::take_step() {
  struct Within {
    JobWorker& me;
    explicit Within(JobWorker& w) : me(w) { me.in_step_ = true; }
    ~Within() { me.in_step_ = false, me.slices_.abandon(); }
  };
  const Within within(*this);
  const auto oracle = [&](const optim::Slices& slices) {
    slices_.begin(slices);
    const float loss = gradient_();
    (void)job_->peers();  // throws in a process that the gradient function has forked
    slices_.end();
    return Tensor::of<float>({1}, {loss});
  };
  return double(present().step(oracle).item());
}

double JobWorker::step(const Gradient& gradient) {
  demand(!in_step_, "a step is no part of another one");
  present();
  gradient_ = gradient;
  const double loss = through_changes(Call::kStep, [&] { return take_step(); });
  ++taken_, calls_ = 0;
  return loss;
}

void JobWorker::ready(size_t parameter) {
  slices_.ready(parameter);
  job_->peers().progress();  // of whatever algorithm: nothing else moves it on while the gradient is computed
}
void JobWorker::set_rate(float lr) {
  present().set_rate(lr);
  rate_ = lr;
}
void JobWorker::show_model() {
  through_changes(Call::kShow, [&] { show_to_all(); });
  ++calls_;
}
void JobWorker::show_to_all() {
  present().show_model();
  if (job_->council()) job_->peers().barrier();
}
void JobWorker::hide_model() { present().hide_model(); }

// A worker that has passed the barrier knows that all have the model, and no longer needs the others. If they
// have passed it and this worker has not, they have ended the run with the model that it has, too.
double JobWorker::finish() {
  std::optional<double> apart;
  try {
    through_changes(Call::kFinish, [&] {
      apart.reset();
      finish_with_all(apart);
    });
  } catch (const comm::RunEnded&) {
    if (!apart) throw;
  }
  return apart.value_or(0);
}
void JobWorker::finish_with_all(std::optional<double>& apart) {
  apart.emplace(present().finish());
  comm::Council* const council = job_->council();
  if (!council) return;
  job_->peers().barrier();
  council->end_run({.step = present().steps()});
}

void JobWorker::save(const std::string& directory, int keep) {
  path_ = directory, keep_ = keep;
  through_changes(Call::kSave, [&] { write_checkpoint(); });
  ++calls_;
}

void JobWorker::write_checkpoint() {
  present().settle();
  Checkpoints checkpoints(path_, keep_);
  if (is_elastic()) checkpoints.attempt(int(job_->council()->now().epoch));
  write_together(checkpoints, job_->peers(), present(), identity_of(o_, job_->peers().size()));
}

void JobWorker::load(const std::string& path) {
  if (joins_) return;
  demand(!is_elastic() || taken_ == 0, "a checkpoint is loaded into an elastic job before its first step");
  path_ = path;
  through_changes(Call::kLoad, [&] { read_checkpoint(); });
  ++calls_;
}

void JobWorker::read_checkpoint() {
  present().settle();
  read_together(path_, job_->peers(), present(), identity_of(o_, job_->peers().size()));
  taken_ = present().steps();
  if (is_elastic()) job_->council()->complete_step(taken_, taken_);
}

std::map<std::string, double> JobWorker::figures() const {
  const int64_t steps = present().steps();
  const comm::Traffic t = job_->traffic();
  return {{"steps", double(steps)},         {"changes", double(job_->changes())},
          {"messages", double(t.messages)}, {"bytes", double(t.bytes)},
          {"waited_s", t.waited},           {"in_flight_s", t.in_flight}};
}

}  // namespace skein::apps
