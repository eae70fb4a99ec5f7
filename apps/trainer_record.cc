// What a run says about itself: progress, metrics, evaluations, checkpoints, and the files it leaves.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "apps/clock.h"
#include "apps/preparation.h"
#include "apps/report.h"
#include "apps/together.h"
#include "apps/trace_file.h"
#include "apps/trainer.h"
#include "apps/weights.h"
#include "comm/averaging.h"
#include "engine/vec.h"

namespace skein::apps {

namespace fs = std::filesystem;

namespace {

Json environment_of(const Setup& s) {
  Json e = describe_environment();
  e["device"] = text(s.device);
  e["threads"] = s.threads;
  e["data_threads"] = s.data_threads;
  e["backend"] = cpu::describe();
  if (s.place.world > 1) e["refused_callers"] = s.place.strangers;
  return e;
}

}  // namespace

double Trainer::elapsed() const { return earlier_seconds_ + clock_seconds() - started_; }

int64_t Trainer::unreadable() const { return unreadable_before_ + (loader_ ? loader_->unreadable() : 0); }

void Trainer::start_log() {
  started_ = asked_at_ = clock_seconds();
  next_question_ = asked_step_ = k_;
  if (log_) earlier_seconds_ = log_->seconds();
  if (log_)
    log_->write(RunEvent{.step = k_,
                         .seconds = elapsed(),
                         .config = to_json(config_),
                         .environment = environment_of(setup_),
                         .steps_per_epoch = setup_.steps_per_epoch,
                         .total_steps = setup_.total_steps,
                         .workers = setup_.place.world});
  moment_ = {.epochs = double(setup_.total_steps) / double(setup_.steps_per_epoch),
             .steps = setup_.total_steps,
             .loss = NAN,
             .top1 = NAN,
             .images_per_second = NAN,
             .workers = setup_.place.world};
}

// All clocks begin at a barrier, so that the time lines of different hosts fit.
void Trainer::start_trace() {
  if (config_.trace.empty()) return;
  trace_ = std::make_unique<comm::Trace>();
  comm::Communicator* const comm = setup_.place.comm;
  if (comm) comm->barrier();
  trace_began_ = clock_seconds();
  if (comm) comm->meter().record(trace_.get());
}

void Trainer::leave_trace(comm::Communicator* comm) {
  if (trace_) end_trace(config_.trace, comm, setup_.place.rank, *trace_, trace_began_);
}

void Trainer::refuse_bad_loss() const {
  const std::string last = saved_step_ >= 0
                               ? text("; the checkpoint of step ", saved_step_, " is sound: train_imagenet ",
                                      "--resume ", directory_, " --lr ", config_.lr / 10)
                               : text("; no checkpoint was written yet");
  throw Error(text("the loss is not a finite number after step ", k_, " (epoch ", epochs_seen(), ", rate ",
                   schedule_.at(k_ - 1),
                   "): training has diverged. Try a lower --lr or a longer --warmup-epochs", last));
}

// Reading the loss is free on the CPU; a GPU would have to wait for it.
void Trainer::end_step() {
  const bool log = k_ % config_.log_every == 0 || k_ == setup_.total_steps;
  if ((log || !setup_.device.is_cuda()) && !meters_.read()) refuse_bad_loss();
  moment_.epoch = epochs_seen();
  moment_.step = k_;
  if (log) {
    const double spent = std::max(seconds_.training() - at_last_event_.training(), 1e-9);
    // Who may be at another step is not asked.
    const auto [loss, top1, images] = asynchronous_ ? Seen{meters_.recent.mean_loss(), meters_.recent.top1(),
                                                           meters_.recent.images * setup_.place.world}
                                                    : over_workers(meters_.recent);
    moment_.loss = loss.mean;
    moment_.top1 = top1.mean;
    moment_.images_per_second = images / spent;
    moment_.data_wait = (seconds_.data - at_last_event_.data) / spent;
    moment_.peer_wait = (seconds_.peers - at_last_event_.peers) / spent;
    moment_.seconds_left =
        seconds_.training() / double(std::max<int64_t>(k_, 1)) * double(setup_.total_steps - k_);
    if (log_)
      log_->write(StepEvent{.step = k_,
                            .epoch = epochs_seen(),
                            .seconds = elapsed(),
                            .loss = loss,
                            .top1 = top1,
                            .learning_rate = schedule_.at(k_ - 1),
                            .images_per_second = moment_.images_per_second,
                            .data_wait = moment_.data_wait,
                            .peer_wait = moment_.peer_wait});
    meters_.recent = {};
    at_last_event_ = seconds_;
    say_unreadable();
  }
  progress_.show(moment_);
  const Every every = parse_every(config_);
  if (every.steps > 0 && k_ % every.steps == 0) save();
}

void Trainer::say_unreadable() {
  for (const std::string& name : loader_->newly_unreadable()) {
    progress_.say("skipped, cannot be read: " + name);
    if (unreadable_names_.size() < 100) unreadable_names_.push_back(name);
  }
}

bool Trainer::close_epoch() {
  meet();
  if (stop_at_ >= 0) return false;
  if (!meters_.read()) refuse_bad_loss();
  const int64_t epoch = k_ / setup_.steps_per_epoch;
  if (config_.eval_every > 0 && epoch % config_.eval_every == 0 && !score()) return false;
  const double spent = std::max(seconds_.training() - training_at_epoch_, 1e-9);
  const auto [loss, top1, images] = over_workers(meters_.epoch);
  const EpochEvent event{.step = k_,
                         .epoch = epoch,
                         .seconds = elapsed(),
                         .loss = loss,
                         .top1 = top1,
                         .images_per_second = images / spent,
                         .unreadable = unreadable() - unreadable_at_epoch_};
  if (log_) log_->write(event);
  std::string line = fmt::format("epoch {}  train loss {:.4f} top-1 {:.2f} %", epoch, loss.mean, top1.mean);
  if (scored_step_ == k_)
    line += fmt::format("  test loss {:.4f} top-1 {:.2f} %", score_->loss, score_->top1);
  progress_.say(line + fmt::format("  {:.0f} images/s", event.images_per_second));
  closed_epochs_ = epoch;
  unreadable_at_epoch_ = unreadable();
  training_at_epoch_ = seconds_.training();
  meters_.epoch = {};
  const Every every = parse_every(config_);
  if (every.epochs > 0 && epoch % every.epochs == 0) save();
  return true;
}

bool Trainer::score() {
  const Timed t(seconds_.evaluate, trace_.get(), "evaluate");
  const ConsensusModel consensus(config_, setup_, flat_, *strategy_, *worker_);
  const std::optional<Score> s = evaluate(setup_, *setup_.model, config_.batch_size, stop_);
  if (!s) return false;
  if (setup_.place.comm) distance_ = consensus.distance();
  score_ = s;
  scored_step_ = k_;
  best_top1_ = std::max(best_top1_, s->top1);
  EvalEvent event;
  event.step = k_, event.epoch = epochs_seen(), event.seconds = elapsed();
  event.loss = s->loss, event.top1 = s->top1, event.top5 = s->top5;
  event.consensus_distance = distance_;
  if (log_) log_->write(event);
  return true;
}

// Means weigh by images; the smallest and the largest are of workers that saw any.
Trainer::Seen Trainer::over_workers(const Sums& mine) const {
  if (!setup_.place.comm) return {mine.mean_loss(), mine.top1(), mine.images};
  Sums all;
  Spread loss(0, INFINITY, -INFINITY), top1 = loss;
  const auto widen = [](Spread& s, double v) { s.min = std::min(*s.min, v), s.max = std::max(*s.max, v); };
  for (const auto& v : comm::gather_numbers(*setup_.place.comm, {mine.loss, mine.hits, mine.images})) {
    const Sums other{v[0], v[1], v[2]};
    if (other.images == 0) continue;
    all += other;
    widen(loss, other.mean_loss()), widen(top1, other.top1());
  }
  loss.mean = all.mean_loss(), top1.mean = all.top1();
  if (all.images == 0) return {0, 0, 0};
  return {loss, top1, all.images};
}

Transfers Trainer::over_workers(const Transfers& mine) const {
  if (!setup_.place.comm) return mine;
  Transfers sum;
  for (const auto& other :
       comm::gather_numbers(*setup_.place.comm, {mine.bytes, mine.waited, mine.in_flight}))
    sum.bytes += other[0], sum.waited += other[1], sum.in_flight += other[2];
  return sum;
}

void Trainer::save() {
  if (saved_step_ == k_) return;
  meet();
  const Timed t(seconds_.checkpoint, trace_.get(), "checkpoint");
  comm::Communicator* const comm = setup_.place.comm;
  together(comm, [&] {
    if (!meters_.read() || !all_finite(flat_.x)) refuse_bad_loss();
  });
  const int64_t before = std::exchange(unreadable_before_, unreadable());
  try {
    together(comm, [&] {
      if (first()) checkpoints_->begin(k_);
    });
    together(comm, [&] {
      checkpoints_->write(k_, setup_.place.rank, [this](Archive& a) { visit(a); });
      write_for_the_lost();
    });
    together(comm, [&] {
      if (first()) checkpoints_->commit(k_, identity());
    });
  } catch (...) {
    if (first()) checkpoints_->abandon(k_);
    throw;
  }
  unreadable_before_ = before;
  saved_step_ = k_;
}

Outcome Trainer::finish(bool interrupted) {
  save();
  if (!interrupted) {
    strategy_->finish(*worker_);
    interrupted = scored_step_ != k_ && !score();
  }
  progress_.finish();
  say_unreadable();
  worker_hashes_ = {};
  if (setup_.place.comm)
    for (int r = 0; r < setup_.place.comm->size(); ++r) {
      const std::string own = parameter_hash(flat_, flat_.x);
      worker_hashes_.push_back(text_of_rank(setup_.place.comm, r, own));
    }
  const ConsensusModel consensus(config_, setup_, flat_, *strategy_, *worker_);
  if (setup_.place.comm) distance_ = consensus.distance();
  count_transfers();
  const Transfers all = over_workers(transfers_);
  const Outcome out = outcome(interrupted, over_workers(meters_.total).images);
  together(setup_.place.comm, [&] {
    if (first()) leave_files(out, all);
  });
  leave_trace(setup_.place.comm);
  return out;
}

Outcome Trainer::outcome(bool interrupted, double images) const {
  Outcome out{.step = k_,
              .interrupted = interrupted,
              .bereaved = "",
              .score = score_,
              .hash = parameter_hash(flat_, flat_.x)};
  out.training_seconds = seconds_.training();
  out.images_per_second = images / std::max(out.training_seconds, 1e-9);
  return out;
}

void Trainer::leave_files(const Outcome& out, const Transfers& all) {
  Summary s;
  s.steps = k_;
  s.epochs = epochs_seen();
  s.interrupted = out.interrupted;
  if (out.score) s.top1 = out.score->top1, s.top5 = out.score->top5, s.loss = out.score->loss;
  if (best_top1_ >= 0) s.best_top1 = best_top1_;
  s.images_per_second = out.images_per_second;
  s.seconds = elapsed();
  s.seconds_by_work = {{"data", seconds_.data},
                       {"forward", seconds_.forward},
                       {"backward", seconds_.backward},
                       {"update", seconds_.update},
                       {"peers", seconds_.peers},
                       {"evaluate", seconds_.evaluate},
                       {"checkpoint", seconds_.checkpoint}};
  s.hash = out.hash;
  s.worker_hashes = worker_hashes_;
  s.consensus_distance = distance_;
  if (setup_.place.comm) s.bytes_per_step = all.bytes / setup_.place.world / double(std::max<int64_t>(k_, 1));
  if (all.in_flight > 0) s.hidden_share = 1 - all.waited / all.in_flight;
  if (const data::Shards& shards = setup_.portions->shards(); !shards.empty()) {
    s.classes = setup_.data.train->classes();
    s.labels = data::histograms(shards, data::labels_of(*setup_.data.train), int(s.classes.size()));
  }
  s.parameters = flat_.count;
  s.unreadable = unreadable();
  s.unreadable_names = unreadable_names_;
  s.workers = setup_.place.world;
  s.environment = environment_of(setup_);
  s.config = to_json(config_);
  if (!out.interrupted)
    export_model((fs::path(directory_) / "model.safetensors").string(), *setup_.model,
                 model_info(config_, setup_, k_));
  write_summary(directory_, s);
  write_report(directory_);
}

}  // namespace skein::apps
