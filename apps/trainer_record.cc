// What a run says about itself: progress, metrics, evaluations, checkpoints, and the files it leaves.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "apps/clock.h"
#include "apps/device_choice.h"
#include "apps/preparation.h"
#include "apps/report.h"
#include "apps/together.h"
#include "apps/trainer.h"
#include "apps/weights.h"
#include "engine/file.h"
#include "engine/vec.h"

namespace skein::apps {

namespace fs = std::filesystem;

namespace {

Json environment_of(const Setup& s) {
  Json e = describe_environment();
  describe_device(e, s.device);
  e["threads"] = s.threads;
  e["data_threads"] = s.data_threads;
  if (!s.data_cores.empty()) e["data_cores"] = s.data_cores;
  e["backend"] = cpu::describe();
  if (!s.messages.empty()) e["device_messages"] = s.messages;
  if (s.place.world > 1) e["refused_callers"] = s.place.strangers;
  return e;
}

}  // namespace

double Trainer::elapsed() const { return earlier_seconds_ + clock_seconds() - started_; }

void Trainer::start_log() {
  started_ = asked_at_ = clock_seconds();
  next_question_ = asked_step_ = k_;
  if (log_) earlier_seconds_ = log_->seconds();
  record(RunEvent{.step = k_,
                  .seconds = elapsed(),
                  .config = to_json(config_),
                  .environment = environment_of(setup_),
                  .steps_per_epoch = setup_.steps_per_epoch,
                  .total_steps = setup_.total_steps,
                  .workers = setup_.place.world});
  for (const LostEvent& e : lost_)
    if (log_) log_->write(e);
  moment_ = {.epochs = double(setup_.total_steps) / double(setup_.steps_per_epoch),
             .steps = setup_.total_steps,
             .loss = NAN,
             .top1 = NAN,
             .images_per_second = NAN,
             .workers = setup_.place.world};
}

void Trainer::refuse_bad_loss(int64_t step) const {
  const std::string lower = list_checkpoints(directory_).empty() ? "" : text(" --lr ", config_.lr / 10);
  throw Error(text("the loss is not a finite number after step ", step, " (epoch ",
                   double(step) / double(setup_.steps_per_epoch), ", rate ", schedule_.at(step - 1),
                   "): training has diverged. Try a lower --lr or a longer --warmup-epochs",
                   setup_.activations == kF16 ? ", or --precision bf16 where activations exceed 65504" : "",
                   "; ", how_to_resume(), lower));
}

// Reading the loss is free on the CPU. A device is not waited for: numbers sent after one step are read after the
// next, which is queued meanwhile.
void Trainer::end_step() {
  const bool log = k_ % config_.log_every == 0 || k_ == setup_.total_steps;
  const bool later = setup_.device.is_cuda() || graphs_->on();
  if (!later && !meters_.read()) refuse_bad_loss(k_);
  flush_log();
  moment_.epoch = epochs_seen();
  moment_.step = k_;
  if (log) {
    if (later) meters_.send();
    if (scale_) scale_->send();
    sent_ = {k_, seconds_};
    if (!later || k_ == setup_.total_steps) flush_log();
  } else if (!later && std::isnan(moment_.images_per_second)) {  // the first event is still to come
    moment_.loss = meters_.recent.mean_loss(), moment_.top1 = meters_.recent.top1();
  }
  progress_.show(moment_);
  const Every every = parse_every(config_);
  if (every.steps > 0 && k_ % every.steps == 0) save();
}

void Trainer::flush_log() {
  if (!sent_) return;
  const Sent s = *std::exchange(sent_, {});
  if (!meters_.take()) refuse_bad_loss(s.step);
  const double spent = std::max(s.seconds.training() - at_last_event_.training(), 1e-9);
  const Seen seen = recently(s.seconds);
  look_at_scale(!asynchronous_);
  if (scaling_) moment_.loss_scale = scaling_->scale, moment_.skipped = scaling_->skipped;
  moment_.loss = seen.loss.mean;
  moment_.top1 = seen.top1.mean;
  moment_.images_per_second = seen.images / spent;
  moment_.data_wait = seen.data_wait.mean;
  moment_.peer_wait = seen.peer_wait.mean;
  moment_.seconds_left =
      s.seconds.training() / double(std::max<int64_t>(s.step, 1)) * double(setup_.total_steps - s.step);
  record(StepEvent{.step = s.step,
                   .epoch = double(s.step) / double(setup_.steps_per_epoch),
                   .seconds = elapsed(),
                   .loss = seen.loss,
                   .top1 = seen.top1,
                   .learning_rate = schedule_.at(s.step - 1),
                   .images_per_second = moment_.images_per_second,
                   .data_wait = seen.data_wait,
                   .peer_wait = seen.peer_wait,
                   .bytes = seen.bytes,
                   .scaling = scaling_});
  meters_.recent = {};
  at_last_event_ = s.seconds;
  say_unreadable();
}

bool Trainer::close_epoch() {
  const int64_t epoch = k_ / setup_.steps_per_epoch;
  bool whole = false;
  Seen seen;
  wholly([&] {
    meet();
    if (stop_at_ >= 0) return;
    flush_log();
    if (!meters_.read()) refuse_bad_loss(k_);
    if (config_.eval_every > 0 && epoch % config_.eval_every == 0 && !score()) return;
    seen = over_workers(meters_.epoch);
    whole = true;
  });
  if (!whole) return false;
  record_score();
  record_epoch(seen);
  closed_epochs_ = epoch;
  unreadable_at_epoch_ = unreadable();
  training_at_epoch_ = seconds_.training();
  meters_.epoch = {};
  const Every every = parse_every(config_);
  if (every.epochs > 0 && epoch % every.epochs == 0) save();
  return true;
}

void Trainer::record_epoch(const Seen& seen) {
  const int64_t epoch = k_ / setup_.steps_per_epoch;
  const double spent = std::max(seconds_.training() - training_at_epoch_, 1e-9);
  const EpochEvent event{.step = k_,
                         .epoch = epoch,
                         .seconds = elapsed(),
                         .loss = seen.loss,
                         .top1 = seen.top1,
                         .images_per_second = seen.images / spent,
                         .unreadable = unreadable() - unreadable_at_epoch_,
                         .bytes = seen.bytes};
  record(event);
  std::string line =
      fmt::format("epoch {}  train loss {:.4f} top-1 {:.2f} %", epoch, seen.loss.mean, seen.top1.mean);
  if (scored_step_ == k_)
    line += fmt::format("  test loss {:.4f} top-1 {:.2f} %", score_->loss, score_->top1);
  if (scored_step_ == k_ && ema_score_) line += fmt::format("  average's {:.2f} %", ema_score_->top1);
  progress_.say(line + fmt::format("  {:.0f} images/s", event.images_per_second));
  refresh_report();
}

// What cannot be saved for lack of space may still leave its model, which is smaller.
Outcome Trainer::finish(bool interrupted) {
  std::string unsaved;
  try {
    save();
  } catch (const BadFile& e) {
    if (interrupted || !is_of_all(e, comm())) throw;
    unsaved = e.what();
  }
  if (!interrupted) {
    strategy_->finish(*worker_);
    const bool scored = scored_step_ == k_;
    wholly([&] {
      meet();
      interrupted = !scored && !score();
    });
    record_score();
  }
  progress_.finish();
  say_unreadable();
  Outcome out;
  wholly([&] {
    meet();
    out = conclude(interrupted);
  });
  if (const std::string odd = setup_.odd_files->to_line(); !odd.empty()) progress_.say(odd);
  if (!unsaved.empty())
    throw Agreed<BadFile>(text(unsaved, "; the model was written: ", directory_, "/model.safetensors"));
  return out;
}

Outcome Trainer::conclude(bool interrupted) {
  worker_hashes_ = {};
  for (int r = 0; r < comm().size() && !setup_.alone; ++r)
    worker_hashes_.push_back(text_of_rank(comm(), r, parameter_hash(flat_, flat_.x)));
  if (!interrupted) leave_ema();
  const ConsensusModel consensus(config_, setup_, flat_, *strategy_, *worker_);
  if (!setup_.alone) distance_ = consensus.distance();
  look_at_scale(true);
  count_transfers();
  const Transfers all = over_workers(transfers_);
  unite_odd_files();
  const Outcome out = outcome(interrupted, over_workers(meters_.total).images, all);
  gather_for_report();
  leave_evaluation();
  together(comm(), [&] {
    if (first()) leave_files(out);
  });
  leave_trace(comm());
  return out;
}

Outcome Trainer::outcome(bool interrupted, double images, const Transfers& all) const {
  Outcome out{.step = k_,
              .interrupted = interrupted,
              .score = score_,
              .ema = ema_score_,
              .best = best_.found(),
              .hash = parameter_hash(flat_, flat_.x)};
  out.training_seconds = seconds_.training();
  out.images_per_second = images / std::max(out.training_seconds, 1e-9);
  if (!setup_.alone) out.bytes_per_step = all.bytes / comm().size() / double(std::max<int64_t>(k_, 1));
  if (all.in_flight > 0) out.hidden_share = 1 - all.waited / all.in_flight;
  return out;
}

void Trainer::leave_files(const Outcome& out) {
  Summary s;
  s.steps = k_;
  s.epochs = epochs_seen();
  s.interrupted = out.interrupted;
  if (out.score) s.top1 = out.score->top1, s.top5 = out.score->top5, s.loss = out.score->loss;
  if (best_top1_ >= 0) s.best_top1 = best_top1_;
  if (out.best) s.best = to_json(*out.best);
  s.images_per_second = out.images_per_second;
  s.seconds = elapsed();
  const std::vector<double> spent = seconds_.each();
  for (size_t kind = 0; kind < spent.size(); ++kind)
    s.seconds_by_work.emplace_back(Seconds::kNames[kind], spent[kind]);
  s.seconds_by_worker = seconds_by_worker_;
  s.hash = out.hash;
  s.worker_hashes = worker_hashes_;
  s.consensus_distance = distance_;
  describe_ema(s);
  s.bytes_per_step = out.bytes_per_step;
  s.scaling = scaling_;
  s.hidden_share = out.hidden_share;
  if (const data::Shards& shards = setup_.portions->shards(); !shards.empty()) {
    s.classes = setup_.data.train->classes();
    s.labels = data::histograms(shards, data::labels_of(*setup_.data.train), int(s.classes.size()));
  }
  s.parameters = flat_.count;
  record_data(s);
  s.workers = setup_.place.world;
  s.lost = lost_;
  s.environment = environment_of(setup_);
  s.environment["cuda_graphs"] = graphs_->describe();
  s.config = to_json(config_);
  if (!out.interrupted)
    export_model((fs::path(directory_) / "model.safetensors").string(), *setup_.model,
                 model_info(config_, setup_, k_));
  write_summary(directory_, s);
  if (!timeline_.is_null())
    write_file((fs::path(directory_) / "timeline.json").string(), timeline_.dump() + '\n');
  write_report(directory_);
}

}  // namespace skein::apps
