// What the record of a run holds of all its workers: sums and their spread, bytes, times, the time line.
#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/clock.h"
#include "apps/report.h"
#include "apps/timeline.h"
#include "apps/trace_file.h"
#include "apps/trainer.h"
#include "comm/averaging.h"

namespace skein::apps {

namespace {

constexpr int64_t kStepsOfATrace = 32;  // where only the latest steps are wanted
constexpr double kHopeless = 10;        // steps in a row that a scale which can go no lower may skip
constexpr double kReportEvery = 30;     // seconds; of a long run more, so that others hardly wait for it

double spent_between(const Seconds& from, const Seconds& to) {
  return std::max(to.training() - from.training(), 1e-9);
}

void widen(Spread& s, double v) {
  s.min = std::min(s.min.value_or(INFINITY), v);
  s.max = std::max(s.max.value_or(-INFINITY), v);
}

}  // namespace

void Trainer::look_at_scale(bool of_all) {
  if (!scale_) return;
  const LossScale::State now = scale_->take();
  if (now.stuck >= kHopeless)
    throw Error(text(
        "the last ", now.stuck, " gradients (up to step ", k_, ") were not finite with a loss scale of ",
        now.scale, ", so no step was taken: training has diverged, or its numbers are beyond fp16's 65504. ",
        "Try a lower --lr, --precision bf16, or --loss-scale dynamic if it was a number"));
  scaling_ = {now.scale, now.skipped};
  if (!of_all) return;
  scaling_->skipped = 0;
  for (const auto& v : comm::gather_numbers(comm(), {now.scale, now.skipped}))
    scaling_->scale = std::min(scaling_->scale, v[0]), scaling_->skipped += v[1] / comm().size();
}

// Means weigh by images, those of waits do not; the smallest and the largest loss are of workers that saw any
// images.
Trainer::Seen Trainer::over_workers(const Sums& mine, const Seconds& until) const {
  const double spent = spent_between(at_last_event_, until),
               data = (until.data - at_last_event_.data) / spent,
               peers = (until.peers - at_last_event_.peers) / spent;
  if (setup_.alone) return {mine.mean_loss(), mine.top1(), mine.images, data, peers, {}};
  Seen seen;
  Sums all;
  double bytes = 0;
  const double share = 1.0 / comm().size();
  for (const auto& v :
       comm::gather_numbers(comm(), {mine.loss, mine.hits, mine.images, data, peers, transfers_.bytes})) {
    widen(seen.data_wait, v[3]), widen(seen.peer_wait, v[4]);
    seen.data_wait.mean += v[3] * share, seen.peer_wait.mean += v[4] * share;
    bytes += v[5] * share;
    const Sums other{v[0], v[1], v[2]};
    if (other.images == 0) continue;
    all += other;
    widen(seen.loss, other.mean_loss()), widen(seen.top1, other.top1());
  }
  seen.loss.mean = all.mean_loss(), seen.top1.mean = all.top1();
  seen.images = all.images;
  seen.bytes = bytes;
  return seen;
}

Trainer::Seen Trainer::over_workers(const Sums& mine) const { return over_workers(mine, seconds_); }

// Who may be at another step is not asked.
Trainer::Seen Trainer::recently(const Seconds& until) const {
  if (!asynchronous_) return over_workers(meters_.recent, until);
  const Sums& mine = meters_.recent;
  const double spent = spent_between(at_last_event_, until);
  return {mine.mean_loss(),
          mine.top1(),
          mine.images * comm().size(),
          (until.data - at_last_event_.data) / spent,
          (until.peers - at_last_event_.peers) / spent,
          transfers_.bytes};
}

Transfers Trainer::over_workers(const Transfers& mine) const {
  Transfers sum;
  for (const auto& other : comm::gather_numbers(comm(), {mine.bytes, mine.waited, mine.in_flight}))
    sum.bytes += other[0], sum.waited += other[1], sum.in_flight += other[2];
  return sum;
}

// All clocks of a whole trace begin at a barrier, so that the time lines of different hosts fit.
void Trainer::start_trace() {
  if (!config_.trace.empty()) comm().barrier();
  trace_began_ = clock_seconds();
  renew_trace();
}

void Trainer::renew_trace() {
  earlier_trace_ = std::exchange(trace_, std::make_unique<comm::Trace>());
  comm().meter().record(trace_.get());
  trace_ends_ = config_.trace.empty() ? k_ + kStepsOfATrace : INT64_MAX;
}

void Trainer::leave_trace(comm::Communicator& comm) {
  if (!config_.trace.empty()) end_trace(config_.trace, comm, setup_.place.rank, *trace_, trace_began_);
}

void Trainer::refresh_report() {
  const double now = clock_seconds();
  if (!first() || now < report_due_) return;
  write_report(directory_);
  report_due_ = std::max(now + kReportEvery, now + 50 * (clock_seconds() - now));
}

void Trainer::gather_for_report() {
  seconds_by_worker_.clear();
  if (!setup_.alone) seconds_by_worker_ = comm::gather_numbers(comm(), seconds_.each());
  std::vector<comm::Span> spans = trace_->spans();
  if (earlier_trace_) {
    const std::vector<comm::Span> before = earlier_trace_->spans();
    spans.insert(spans.begin(), before.begin(), before.end());
  }
  timeline_ = timeline(comm(), setup_.place.rank, spans);
}

}  // namespace skein::apps
