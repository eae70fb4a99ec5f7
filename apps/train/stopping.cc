// Workers in step ask each other about twice a second; asynchronous workers notify each other, and meet.
#include "apps/train/stopping.h"

#include <algorithm>

#include "apps/base/clock.h"
#include "comm/communicator/patience.h"
#include "comm/membership/council.h"

namespace skein::apps {

namespace {
// Seconds between two questions whether to stop, half of the delay of Ctrl-C: more where answers take longer.
constexpr double kOften = 0.5, kSeldom = 2;
constexpr comm::Tag kStop = comm::kOwnTags - 1;
}  // namespace

Stopping::Stopping(Run& run, Beside beside, std::function<void()> settle)
    : run_(run), settle_(std::move(settle)), beside_(std::move(beside)), leaving_(run) {}

Stopping::Stopping(Run& run, std::function<void()> settle)
    : Stopping(run, {[] { return 0.0; }, [](const auto&) {}}, std::move(settle)) {}

void Stopping::begin() {
  asked_at_ = clock_seconds();
  next_question_ = asked_step_ = run_.k;
  leaving_.begin();
}

// Nobody waits for an answer, because the question may be behind long messages: it is read where all ask
// again. The interval is the number of steps that the fastest worker takes in it, which all learn.
bool Stopping::here() {
  const bool asked = run_.asked_to_stop();
  if (run_.comm().size() == 1) return asked || run_.asked_to_leave();  // there are no others to leave
  if (run_.asynchronous) return here_apart();
  if (run_.k < next_question_) return false;
  next_question_ = run_.k + 1;
  leaving_.look();
  if (question_ && answer()) return true;
  ask(asked);
  return false;
}

void Stopping::ask(bool asked) {
  const int64_t taken = run_.k - asked_step_;
  const double each = (clock_seconds() - asked_at_) / double(std::max<int64_t>(1, taken));
  const double steps = taken == 0 ? 1 : std::clamp(interval_ / std::max(each, 1e-6), 1.0, 1000.0);
  leaves_ = run_.asked_to_leave();
  question_.emplace(run_.comm(), std::vector<double>{double(asked), steps, double(leaves_), beside_.tell()});
  asked_at_ = clock_seconds();
  asked_step_ = run_.k;
}

bool Stopping::answer() {
  bool stop = false, all_leave = true;
  double next = 1000;
  std::vector<double> told;
  const double began = clock_seconds();
  const auto told_by_all = question_->wait();
  const double waited = clock_seconds() - began;
  asked_at_ += waited;  // what steps take is meant
  interval_ = std::clamp(0.9 * interval_ + 2 * waited, kOften, kSeldom);
  for (const auto& other : told_by_all) {
    stop = stop || other[0] != 0, next = std::min(next, other[1]);
    all_leave = all_leave && other[2] != 0;
    told.push_back(other[3]);
  }
  question_.reset();
  if (stop || all_leave) return true;
  if (leaves_ && leaving_.is_due()) run_.setup.place.council->leave();
  next_question_ = run_.k + int64_t(next);
  beside_.hear(told);
  return false;
}

// A worker that is asked to stop tells the others. All meet, and those behind continue to the step
// of the furthest one.
bool Stopping::here_apart() {
  if (stop_at_ >= 0) return run_.k >= stop_at_;
  // A replayed run can stop only at steps where the recorded one met.
  if (!run_.config.replay.empty()) return false;
  leaving_.look();
  if (!leaving_.is_of_all() && !run_.asked_to_stop() && !run_.comm().poll(comm::kAnyone, kStop)) {
    if (leaving_.is_due()) run_.setup.place.council->leave();
    return false;
  }
  tell_others();
  stop_at_ = run_.k;
  met_at_ = -1;  // workers that met here may have taken more steps since
  return meet();
}

void Stopping::tell_others() {
  comm::Communicator& comm = run_.comm();
  for (int r = 0; r < comm.size(); ++r) try {
      if (r != comm.rank()) comm.push(r, kStop, run_.k, 1, Tensor::zeros({1}));
    } catch (const comm::PeerLost&) {  // a lost worker need not be told
    }
}

// Workers in step are at the same step already, and asynchronous ones need to meet only once at a step.
bool Stopping::meet() {
  if (met_at_ == run_.k || !run_.asynchronous) return true;
  bool together = false;
  run_.survivors.meet([&] { together = settle_at_one_step(); });
  return together;
}

bool Stopping::settle_at_one_step() {
  const comm::Patience patience(run_.comm());
  if (!run_.config.replay.empty() && run_.asked_to_stop()) stop_at_ = run_.k;
  for (bool together = false; !together;) {
    settle_();
    int64_t furthest = run_.k, stop = stop_at_;
    together = true;
    for (const auto& other : comm::gather_numbers(run_.comm(), {double(run_.k), double(stop_at_)})) {
      together = together && int64_t(other[0]) == run_.k;
      furthest = std::max(furthest, int64_t(other[0]));
      stop = std::max(stop, int64_t(other[1]));
    }
    if (stop >= 0) stop_at_ = furthest;
    if (run_.k < furthest) break;
  }
  if (run_.k < stop_at_) return false;
  met_at_ = run_.k;
  return true;
}

}  // namespace skein::apps
