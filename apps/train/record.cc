// Events are written when their numbers are known, which on a device is one step later.
#include "apps/train/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/base/together.h"
#include "apps/launch/simulated.h"
#include "apps/report/report.h"
#include "apps/train/saving.h"

namespace skein::apps {

namespace {

constexpr double kHopeless = 10;     // how many steps in a row the lowest scale may skip
constexpr double kReportEvery = 30;  // seconds; more in a long run, so that the others hardly wait for it

double spent_between(const Seconds& from, const Seconds& to) {
  return std::max(to.training() - from.training(), 1e-9);
}

}  // namespace

Record::Record(Run& run, Batches& batches, Learning& learning)
    : run_(run), batches_(batches), learning_(learning), workers_(run, log_) {
  moment_ = {.epochs = run.epochs_at(run.setup.total_steps),
             .steps = run.setup.total_steps,
             .loss = NAN,
             .top1 = NAN,
             .images_per_second = NAN,
             .workers = run.setup.place.world,
             .workers_at_first = run.setup.place.world};
}

void Record::open(bool continues) {
  log_.open(run_.directory, continues ? run_.k : -1, run_.config.tensorboard);
}

void Record::begin() {
  log_.start();
  if (workers_.changes().empty())  // a change of membership begins no other run
    log_.write(RunEvent{.step = run_.k,
                        .seconds = log_.elapsed(),
                        .config = to_json(run_.config),
                        .environment = run_.environment(),
                        .steps_per_epoch = run_.setup.steps_per_epoch,
                        .total_steps = run_.setup.total_steps,
                        .global_batch = run_.setup.global_batch,
                        .workers = run_.setup.place.world});
  workers_.begin();
}

void Record::refuse_bad_loss(int64_t step) const {
  const std::string lower =
      list_checkpoints(run_.directory).empty() ? "" : text(" --lr ", run_.config.lr / 10);
  throw Error(
      text("the loss is not a finite number after step ", step, " (epoch ", run_.epochs_at(step), ", rate ",
           learning_.schedule.at(step - 1),
           "): training has diverged. Try a lower --lr or a longer --warmup-epochs",
           run_.setup.activations == kF16 ? ", or --precision bf16 where activations exceed 65504" : "", "; ",
           how_to_resume(run_.directory), lower));
}

void Record::read_losses() {
  if (!learning_.gradient.meters().read()) refuse_bad_loss(run_.k);
}

void Record::refuse_bad_numbers() {
  together(run_.comm(), [&] {
    read_losses();
    if (!all_finite(learning_.flat.x)) refuse_bad_loss(run_.k);
  });
}

// Reading the loss is free on the CPU. On a device the host does not wait: numbers sent after one step are
// read after the next one is queued.
void Record::end_step() {
  workers_.end_step();
  Meters& meters = learning_.gradient.meters();
  const int64_t k = run_.k;
  const bool last = k == run_.setup.total_steps, log = k % run_.config.log_every == 0 || last;
  const bool later = run_.setup.device.is_cuda() || learning_.gradient.graphs().on();
  if (!later) read_losses();
  ask_others();
  if (asked_ && asked_->told->done()) write_step();
  moment_.epoch = run_.epochs_seen();
  moment_.step = k;
  if (log) {
    if (later) meters.send();
    if (learning_.gradient.scale()) learning_.gradient.scale()->send();
    sent_ = {k, run_.costs.seconds};
    if (!later) ask_others();
    if (last) flush();
  } else if (!later && std::isnan(moment_.images_per_second)) {  // before the first event
    moment_.loss = meters.recent.mean_loss(), moment_.top1 = meters.recent.top1();
  }
  if (run_.setup.place.simulated) note_world(*run_.setup.place.simulated);
  run_.progress.show(moment_);
}

// What is left, in time of the machine that simulates.
void Record::note_world(const Simulated& s) {
  const double real = s.world.real_seconds();
  if (steps_at_first_ < 0) steps_at_first_ = run_.k - 1, real_at_first_ = real;
  moment_.virtual_seconds = s.world.now();
  moment_.events_per_second = double(s.world.events()) / std::max(real, 1e-9);
  moment_.seconds_left =
      (real - real_at_first_) / double(run_.k - steps_at_first_) * double(run_.setup.total_steps - run_.k);
}

void Record::flush() {
  ask_others();
  if (asked_) write_step();
}

// The numbers of this worker have come from the device.
void Record::ask_others() {
  if (!sent_) return;
  if (asked_) write_step();
  take(*std::exchange(sent_, {}));
  if (!asked_->told) write_step();
  batches_.say_unreadable();
}

// The others' are waited for at the next event at the latest: they may be behind long messages.
void Record::take(const Sent& s) {
  if (!learning_.gradient.meters().take()) refuse_bad_loss(s.step);
  const Seen mine = this->mine(std::exchange(learning_.gradient.meters().recent, {}), s.spent);
  take_scale(false);
  asked_.emplace();
  asked_->spent = spent_between(std::exchange(at_last_event_, s.spent), s.spent);
  asked_->event = {
      .step = s.step,
      .epoch = run_.epochs_at(s.step),
      .seconds = log_.elapsed(),
      .learning_rate = learning_.schedule.at(s.step - 1),
      .scaling = scaling_,
      .workers = run_.setup.place.council ? std::optional<int64_t>(moment_.workers) : std::nullopt};
  moment_.seconds_left =
      s.spent.training() / double(std::max<int64_t>(s.step, 1)) * double(run_.setup.total_steps - s.step);
  if (run_.asynchronous || !mine.bytes)
    asked_->seen = like_mine(mine, run_.comm().size());
  else
    asked_->told.emplace(run_.comm(), told(mine));
  if (asked_->told && scaling_) asked_->scales.emplace(run_.comm(), told(*scaling_));
}

void Record::write_step() {
  Asked a = *std::exchange(asked_, {});
  const SeenByAll seen = a.told ? over_workers(a.told->wait()) : a.seen;
  StepEvent& e = a.event;
  if (a.scales) scaling_ = e.scaling = scaling_over_workers(a.scales->wait());
  e.loss = seen.loss, e.top1 = seen.top1, e.images_per_second = seen.images / a.spent;
  e.data_wait = seen.data_wait, e.peer_wait = seen.peer_wait, e.bytes = seen.bytes;
  moment_.loss = seen.loss.mean;
  moment_.top1 = seen.top1.mean;
  moment_.images_per_second = e.images_per_second;
  moment_.data_wait = seen.data_wait.mean;
  moment_.peer_wait = seen.peer_wait.mean;
  if (e.scaling) moment_.loss_scale = e.scaling->scale, moment_.skipped = e.scaling->skipped;
  log_.write(e);
}

Seen Record::mine(const Sums& sums, const Seconds& until) const {
  const double spent = spent_between(at_last_event_, until);
  return {sums, (until.data - at_last_event_.data) / spent, (until.peers - at_last_event_.peers) / spent,
          run_.bytes_sent()};
}

void Record::take_scale(bool of_all) {
  if (!learning_.gradient.scale()) return;
  const LossScale::State now = learning_.gradient.scale()->take();
  if (now.stuck >= kHopeless)
    throw Error(
        text("the last ", now.stuck, " gradients (up to step ", run_.k,
             ") were not finite with a loss scale of ", now.scale,
             ", so no step was taken: training has diverged, or its numbers exceed fp16's maximum of 65504. ",
             "Try a lower --lr, --precision bf16, or --loss-scale dynamic if it was a number"));
  scaling_ = {now.scale, now.skipped};
  if (of_all) scaling_ = over_workers(run_.comm(), *scaling_);
}

SeenByAll Record::epoch() {
  return over_workers(run_.comm(), mine(learning_.gradient.meters().epoch, run_.costs.seconds));
}

void Record::close_epoch(const SeenByAll& seen, const std::string& scores) {
  const double training = run_.costs.seconds.training();
  const EpochEvent event{.step = run_.k,
                         .epoch = run_.epochs(),
                         .seconds = log_.elapsed(),
                         .loss = seen.loss,
                         .top1 = seen.top1,
                         .images_per_second = seen.images / std::max(training - training_at_epoch_, 1e-9),
                         .unreadable = batches_.unreadable() - unreadable_at_epoch_,
                         .bytes = seen.bytes};
  log_.write(event);
  run_.progress.say(fmt::format("epoch {}  train loss {:.4f} top-1 {:.2f} %{}  {} images/s", event.epoch,
                                seen.loss.mean, seen.top1.mean, scores,
                                format_speed(event.images_per_second)));
  refresh_report();
  unreadable_at_epoch_ = batches_.unreadable();
  training_at_epoch_ = run_.costs.seconds.training();
  learning_.gradient.meters().epoch = {};
}

void Record::write_score(std::optional<EvalEvent> e) {
  if (!e) return;
  e->seconds = log_.elapsed();
  log_.write(*e);
}

void Record::refresh_report() {
  const double now = clock_seconds();
  if (!run_.first() || now < report_due_) return;
  write_report(run_.directory);
  report_due_ = std::max(now + kReportEvery, now + 50 * (clock_seconds() - now));
}

void Record::continue_with(const Legacy& legacy, double weight_lost) {
  workers_.continue_with(legacy, weight_lost);
  moment_.workers_at_first = workers_.at_first();
  // What was due with the last step has been written, or is lost with those who measured it.
  if (run_.k % run_.config.log_every == 0) learning_.gradient.meters().recent = {};
}

void Record::describe(Summary& s) const {
  s.costs.seconds = log_.elapsed();
  s.scaling = scaling_;
  workers_.describe(s.workers);
}

void Record::visit(Archive& a) {
  Under last(a, "last_event.");
  at_last_event_.visit(last);
  a("training_at_epoch", training_at_epoch_);
  a("unreadable_at_epoch", unreadable_at_epoch_);
}

}  // namespace skein::apps
