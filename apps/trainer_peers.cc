// What the workers of a training decide together: when to stop, and what is left when one of them is lost.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/clock.h"
#include "apps/together.h"
#include "apps/trainer.h"
#include "comm/averaging.h"

namespace skein::apps {

namespace {
constexpr double kQuestionSeconds = 1;  // between two questions whether to stop: what Ctrl-C may take
constexpr comm::Tag kStop = comm::kOwnTags - 1;

// While it lives, no wait of this communicator ends for its length alone.
class Patience {
 public:
  explicit Patience(comm::Communicator& c) : comm_(c), before_(c.set_deadline(1e9)) {}
  ~Patience() { comm_.set_deadline(before_); }
  Patience(const Patience&) = delete;

 private:
  comm::Communicator& comm_;
  const double before_;
};
}  // namespace

// Asking at every step would make every algorithm synchronous. The steps between two questions are those of
// about a second of the fastest worker, which all hear and thus agree on.
bool Trainer::stopped() {
  const bool here = stop_ && stop_();
  if (asynchronous_) return stopped_apart();
  if (comm().size() == 1) return here;
  if (k_ < next_question_) return false;
  const double each = (clock_seconds() - asked_at_) / double(std::max<int64_t>(1, k_ - asked_step_));
  const double steps =
      k_ == asked_step_ ? 1 : std::clamp(kQuestionSeconds / std::max(each, 1e-6), 1.0, 1000.0);
  bool stop = false;
  double next = steps;
  for (const auto& other : comm::gather_numbers(comm(), {double(here), steps}))
    stop = stop || other[0] != 0, next = std::min(next, other[1]);
  asked_at_ = clock_seconds();
  asked_step_ = k_;
  next_question_ = k_ + int64_t(next);
  return stop;
}

// Whoever is asked to stop tells the others; all meet, and those behind go on to the step of the one furthest
// ahead.
bool Trainer::stopped_apart() {
  comm::Communicator& comm = this->comm();
  if (stop_at_ >= 0) return k_ >= stop_at_;
  if (!config_.replay.empty()) return false;  // the recording says when all meet, and only then they can stop
  if (!(stop_ && stop_()) && !comm.poll_any(kStop)) return false;
  for (int r = 0; r < comm.size(); ++r) try {
      if (r != comm.rank()) comm.push(r, kStop, k_, 1, Tensor::zeros({1}));
    } catch (const comm::PeerLost&) {  // it is told nothing any more
    }
  stop_at_ = k_;
  met_at_ = -1;  // for an evaluation or a checkpoint, after which others may have taken another step
  return meet();
}

// Once at a step. Synchronous workers are at the same step already. Others may wait for each other as long as
// it takes: a slow worker is no dead one.
bool Trainer::meet() {
  if (met_at_ == k_ || !asynchronous_) return true;
  bool together = false;
  living_.meet([&] {
    take_living();
    together = meet_all();
  });
  return together;
}

void Trainer::wholly(const std::function<void()>& f) {
  living_.wholly([&] {
    take_living();
    f();
  });
}

void Trainer::take_living() {
  if (&worker_->comm == &comm()) return;
  employ();
  met_at_ = -1;
  note_losses();
}

// When it is noticed, which may be long before the next meeting.
void Trainer::note_losses() {
  const comm::Communicator& everybody = living_.everybody();
  const comm::Membership& all = living_.everybody().membership();
  const int workers = everybody.size();
  for (int r = 0; r < workers; ++r) {
    const bool noted =
        std::any_of(lost_.begin(), lost_.end(), [r](const LostEvent& e) { return e.worker == r; });
    if (noted || all.alive(everybody.world_rank(r))) continue;
    lost_.push_back({.step = k_,
                     .epoch = epochs_seen(),
                     .seconds = started_ > 0 ? elapsed() : 0,
                     .worker = r,
                     .left = workers - int(lost_.size()) - 1,
                     .why = all.why(everybody.world_rank(r))});
    if (log_ && started_ > 0) log_->write(lost_.back());
    if (living_.survives())
      progress_.say(fmt::format("worker {} is lost: {}; {} continue{}", r, lost_.back().why,
                                lost_.back().left, lost_.back().left == 1 ? "s" : ""));
  }
}

bool Trainer::meet_all() {
  comm::Communicator& comm = this->comm();
  const Patience patience(comm);
  if (!config_.replay.empty() && stop_ && stop_()) stop_at_ = k_;
  for (bool together = false; !together;) {
    strategy_->settle(*worker_);
    int64_t furthest = k_, stop = stop_at_;
    together = true;
    for (const auto& other : comm::gather_numbers(comm, {double(k_), double(stop_at_)})) {
      together = together && int64_t(other[0]) == k_;
      furthest = std::max(furthest, int64_t(other[0]));
      stop = std::max(stop, int64_t(other[1]));
    }
    if (stop >= 0) stop_at_ = furthest;
    if (k_ < furthest) break;
  }
  if (k_ < stop_at_) return false;
  met_at_ = k_;
  return true;
}

}  // namespace skein::apps
