// A worker's end is noted when it is noticed, which may be long before the workers meet next.
#include "apps/train/worker_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/report/report.h"

namespace skein::apps {
namespace {

constexpr double kRounding = 1e-9;

}  // namespace

WorkerEvents::WorkerEvents(Run& run, EventLog& log)
    : run_(run), log_(log), at_first_(run.setup.place.world) {}

void WorkerEvents::begin() {
  for (const LostEvent& e : lost_) log_.write(e);
}

void WorkerEvents::continue_with(const Legacy& legacy, double weight_lost) {
  at_first_ = legacy.workers_at_first;
  changes_ = legacy.changes;
  if (!changes_.empty()) changing_since_ = legacy.left_at, changes_.back().weight_lost = weight_lost;
  if (weight_lost > kRounding)
    run_.progress.say(
        fmt::format("of the weights w, whose sum was {}, {:.3g} went with the lost; the others' are 1 again",
                    legacy.workers_before, weight_lost));
}

void WorkerEvents::end_step() {
  if (!changing_since_) return;
  ChangeEvent& e = changes_.back();
  e.seconds = log_.elapsed();
  e.healed = clock_seconds() - *std::exchange(changing_since_, {});
  log_.write(e);
}

void WorkerEvents::note_shares(const std::vector<int64_t>& shares, const std::vector<double>& speeds,
                               const std::string& why) {
  shares_ = {.step = run_.k,
             .epoch = run_.epochs_seen(),
             .seconds = log_.elapsed(),
             .shares = shares,
             .speeds = speeds,
             .why = why};
  log_.write(*shares_);
  if (why == "given") return;  // the beginning has said it
  const std::string by = speeds.empty() ? "" : fmt::format(", by {} images/s", describe_speeds(speeds));
  run_.progress.say(fmt::format("batch {}{} ({})", describe_batch(shares), by, why));
}

void WorkerEvents::note_losses() {
  comm::Communicator& everybody = run_.survivors.everybody();
  for (int r = 0; r < everybody.size(); ++r) {
    const comm::Rank rank = everybody.world_rank(r);
    const bool noted =
        std::any_of(lost_.begin(), lost_.end(), [r](const LostEvent& e) { return e.worker == r; });
    if (noted || everybody.membership().alive(rank)) continue;
    lost_.push_back({.step = run_.k,
                     .epoch = run_.epochs_seen(),
                     .seconds = log_.elapsed(),
                     .worker = r,
                     .left = everybody.size() - int(lost_.size()) - 1,
                     .why = everybody.membership().why(rank)});
    const LostEvent& e = lost_.back();
    if (log_.has_started()) log_.write(e);
    if (run_.survivors.survives())
      run_.progress.say(
          fmt::format("worker {} is lost: {}; {} continue{}", r, e.why, e.left, e.left == 1 ? "s" : ""));
  }
}

void WorkerEvents::describe(WorkerFigures& f) const {
  f.lost = lost_;
  f.changes = changes_;
  f.shares = shares_;
}

}  // namespace skein::apps
