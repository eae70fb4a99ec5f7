// The training loop: data to gradient to strategy, and the state that a checkpoint holds.
#include "apps/trainer.h"

#include <algorithm>
#include <filesystem>

#include "apps/algorithm_values.h"
#include "apps/clock.h"
#include "apps/memory_advice.h"
#include "apps/reshare.h"
#include "apps/run_directory.h"
#include "apps/together.h"
#include "apps/trace_file.h"
#include "apps/weights.h"
#include "engine/file.h"
#include "engine/memory.h"
#include "engine/narrow.h"
#include "engine/vec.h"

namespace skein::apps {

namespace fs = std::filesystem;

void Seconds::visit(Archive& a) {
  a("data", data);
  a("forward", forward);
  a("backward", backward);
  a("update", update);
  a("peers", peers);
  a("evaluate", evaluate);
  a("checkpoint", checkpoint);
}

void Transfers::visit(Archive& a) {
  a("bytes", bytes);
  a("waited", waited);
  a("in_flight", in_flight);
}

namespace {

// A warm-up longer than a fifth of the run would leave little to warm up for.
optim::Schedule schedule_of(const Config& c, const Setup& s) {
  const double rate =
      c.reference_batch > 0 ? optim::scale_rate(c.lr, s.global_batch, c.reference_batch) : c.lr;
  const double epochs = double(s.total_steps) / double(s.steps_per_epoch);
  const double warmup = std::min(c.warmup_epochs, epochs / 5);
  return naming_place(c, "lr-schedule", [&] {
    return optim::parse_schedule(c.lr_schedule, rate, s.steps_per_epoch, epochs, warmup);
  });
}

// The flags, and what algorithms know of the run they are in.
optim::Options strategy_options(const Config& c, const Setup& s, const optim::Schedule& schedule) {
  optim::Options o = options_of(c, s.steps_per_epoch);
  o.set("total-steps", text(s.total_steps));
  o.set("warmup-steps", text(schedule.warmup));
  return o;
}

}  // namespace

Trainer::Trainer(const Config& config, Setup setup, std::string directory, Progress& progress, Living& living)
    : config_(config),
      setup_(std::move(setup)),
      directory_(std::move(directory)),
      progress_(progress),
      past_(4),
      living_(living),
      meters_(setup_.device) {
  const Config& c = config_;
  nn::Module& model = *setup_.model;
  const MemoryFor what("parameters, gradients and what optimizer and algorithm keep");
  // Where peers can see it, x and g themselves lie in memory shared with them.
  flat_ = nn::flatten(model, setup_.device.is_cuda() ? allocator(setup_.device) : comm().allocator());
  if (!c.weights.empty()) {
    const std::string changed = import_for_tuning(c.weights, model, setup_.data.train->classes());
    progress_.say(changed.empty() ? "weights from " + c.weights : changed);
  }
  params_ = model.params();
  // On a GPU the layers of a low-precision run take their weights from a copy that the step refreshes. The
  // CPU's convolutions reorder weights at each call, whatever type they come in: a copy would be written for
  // nothing.
  if (setup_.device.is_cuda() && setup_.activations != kF32) keep_narrow(flat_.x, setup_.activations);
  slicer_ = std::make_unique<nn::Slicer>(flat_, int64_t(c.slice_mb * (1 << 20)));
  scale_ = naming_place(c, "loss-scale",
                        [&] { return make_loss_scale(c.loss_scale, setup_.activations, setup_.device); });
  rule_ = optim::sgd(flat_.x, {.momentum = float(c.momentum),
                               .weight_decay = float(c.weight_decay),
                               .nesterov = c.nesterov,
                               .decayed = c.decay_all ? flat_.x.size() : flat_.decayed,
                               .on = scale_ ? scale_->on() : nullptr});
  const data::ImageSize& image = setup_.image;
  graphs_ = std::make_unique<StepGraphs>(records_steps(c.cuda_graphs, setup_.device), setup_.device,
                                         c.batch_size, Shape{image.height, image.width, image.channels},
                                         [this](const std::string& why) { progress_.say(why); });
  recorded_rule_ = graphs_->recorded(*rule_);
  schedule_ = schedule_of(c, setup_);
  strategy_ = optim::make_strategy(c.algorithm, strategy_options(c, setup_, schedule_), setup_.place.world);
  employ();
  asynchronous_ = !setup_.alone && optim::strategy_row(c.algorithm).asynchronous;
  if (c.ema > 0) ema_.emplace(c.ema, flat_);
  mean_ = setup_.data.train->mean();
  deviation_ = setup_.data.train->std();
}

void Trainer::employ() {
  const auto oracle = [this](const optim::GradReady& ready) {
    return within_memory(setup_, config_.batch_size, config_.accumulate, [&] { return gradient(ready); });
  };
  worker_.emplace(optim::Worker{.x = flat_.x,
                                .g = flat_.g,
                                .buffers = flat_.buffers,
                                .rule = recorded_rule_ ? *recorded_rule_ : *rule_,
                                .comm = comm(),
                                .oracle = oracle,
                                .hub = living_.hub(),
                                .scale = scale_.get()});
}

// The strategy makes its vectors, and what its workers share.
void Trainer::begin() {
  if (std::exchange(begun_, true)) return;
  const MemoryFor what("parameters, gradients and what optimizer and algorithm keep");
  wholly([&] { together(comm(), [&] { strategy_->start(*worker_); }); });
  comm().meter().turn(false);  // steps alone count
  counted_ = comm().traffic();
}

Trainer::~Trainer() { comm().meter().record(nullptr); }

Identity Trainer::identity() const {
  return {.model = config_.model,
          .layout = layout_hash(flat_),
          .algorithm = config_.algorithm,
          .world = setup_.place.world,
          .data = config_.data.substr(0, config_.data.find(':')),
          .seed = uint64_t(config_.seed),
          .global_batch = setup_.global_batch};
}

// Everything that the next step, or the record of it, depends on.
void Trainer::visit(Archive& a) {
  a("x", flat_.x);
  if (flat_.buffers) a("buffers", flat_.buffers);
  Under rule(a, "rule."), strategy(a, "strategy."), meters(a, "meters."), seconds(a, "seconds."),
      last(a, "last_event."), transfers(a, "transfers.");
  rule_->visit(rule);
  strategy_->visit(strategy);
  meters_.visit(meters);
  seconds_.visit(seconds);
  at_last_event_.visit(last);
  transfers_.visit(transfers);
  if (scale_) {
    Under scale(a, "loss_scale.");
    scale_->visit(scale);
  }
  if (ema_) {
    Under ema(a, "ema.");
    ema_->visit(ema);
  }
  a("closed_epochs", closed_epochs_);
  a("best_top1", best_top1_);
  a("training_at_epoch", training_at_epoch_);
  data_before_.visit(a);
  a("unreadable_at_epoch", unreadable_at_epoch_);
}

void Trainer::resume(const std::string& checkpoint) {
  const Walk walk = [this](Archive& a) { visit(a); };
  begin();
  wholly([&] {
    together(comm(), [&] {
      if (first()) verify_checkpoint(checkpoint);
    });
    together(comm(), [&] {
      const bool same_world = read_manifest(checkpoint).identity.world == setup_.place.world;
      const auto load = same_world ? load_checkpoint : load_reshared;
      k_ = load(checkpoint, setup_.place.rank, identity(), walk).step;
    });
  });
  if (k_ > setup_.total_steps)
    throw BadOption(text(checkpoint, " has ", k_, " steps behind it, but this run ends after ",
                         setup_.total_steps, "; give a larger --epochs or --steps"));
  std::error_code none;
  resumed_from_ = fs::path(checkpoint).parent_path().parent_path().string();
  continues_ = fs::equivalent(resumed_from_, directory_, none);
  if (first()) changes_of_data_ = changes_since(read_manifest(checkpoint).images, data_index(), setup_.data);
  if (continues_) saved_step_ = k_;
}

Outcome Trainer::run(const std::function<bool()>& stop) {
  stop_ = stop;
  begin();
  wholly([&] { together(comm(), [&] { open_directory(); }); });
  start_log();
  wholly([&] { start_trace(); });
  loader_ = std::make_unique<data::Loader>(*setup_.data.train, train_plan(config_, setup_), setup_.image, k_,
                                           setup_.total_steps, setup_.device, setup_.data_threads, 4,
                                           setup_.data_cores);
  try {
    return finish(!train());
  } catch (const comm::PeerLost& e) { return end_without(e.what()); } catch (const comm::Timeout& e) {
    return end_without(text(e.what(),
                            "; every worker is alive, so none is given up: give a longer --deadline ",
                            "or --wait forever"));
  } catch (const std::exception& e) {
    const bool of_all = dynamic_cast<const OfAll*>(&e) || dynamic_cast<const comm::Disagreement*>(&e);
    if (!of_all) comm().transport().fail();
    throw;
  }
}

bool Trainer::train() {
  for (;;) {
    if (k_ / setup_.steps_per_epoch > closed_epochs_ && !close_epoch()) return false;
    if (k_ == setup_.total_steps || enough_) return true;
    if (stopped()) return false;
    step();
  }
}

void Trainer::step() {
  optim::Worker& me = *worker_;
  me.lr = me.rate = schedule_.at(k_);
  me.samples = setup_.portions->samples(k_, setup_.place.rank);
  me.global_samples = setup_.portions->samples(k_);
  if (asynchronous_) note_losses();
  if (me.comm.size() > 1 && !asynchronous_) past_.remember(k_, [this](Archive& a) { visit(a); });
  if (k_ >= trace_ends_) renew_trace();
  const double from = clock_seconds(), before = seconds_.training(), waited_before = transfers_.waited;
  in_step_ = true;
  {
    const comm::Counted on(me.comm.meter());
    strategy_->iterate(me, k_);
    if (ema_) ema_->update(asynchronous_ ? me.x : strategy_->averaged(me), me.buffers);
  }
  in_step_ = false;
  const double now = clock_seconds();
  trace_->add({comm::Track::kCompute, kFrame, from, now, k_});
  count_transfers();
  // What iterate did outside the oracle: waiting for peers, and the rule.
  const double rest = now - from - (seconds_.training() - before);
  const double peers = std::min(rest, transfers_.waited - waited_before);
  seconds_.peers += peers;
  seconds_.update += rest - peers;
  ++k_;
  end_step();
}

void Trainer::count_transfers() {
  const comm::Traffic all = comm().traffic();
  transfers_.bytes += double(all.bytes - counted_.bytes);
  transfers_.waited += all.waited - counted_.waited;
  transfers_.in_flight += all.in_flight - counted_.in_flight;
  counted_ = all;
}

// A run that cannot begin leaves no directory behind.
void Trainer::open_directory() {
  if (!checkpoints_) checkpoints_ = std::make_unique<Checkpoints>(directory_, int(config_.keep_checkpoints));
  if (!first() || log_) return;
  const bool before = fs::exists(directory_);
  if (!continues_) refuse_a_run(directory_);
  try {
    make_directory(directory_);
    write_file((fs::path(directory_) / "config.toml").string(), to_toml(config_));
    log_ = std::make_unique<MetricsLog>(directory_, continues_ ? k_ : -1);
    if (resumed_from_.empty())
      best_.begin(directory_);
    else
      best_.resume(directory_, resumed_from_, k_);
    if (config_.tensorboard) board_ = std::make_unique<Tensorboard>(directory_, continues_ ? k_ : -1);
    if (!config_.trace.empty()) begin_trace(config_.trace);
  } catch (...) {
    std::error_code none;
    if (!before) fs::remove_all(directory_, none);
    if (!continues_) fs::remove(fs::path(directory_) / "metrics.jsonl", none);
    throw;
  }
}

}  // namespace skein::apps
