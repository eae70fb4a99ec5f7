// What the flags say of model, rule, schedule and algorithm.
#include "apps/train/learning.h"

#include <algorithm>

#include "apps/base/together.h"
#include "apps/config/algorithm_values.h"
#include "apps/model/weights.h"
#include "engine/vectors/narrow.h"
#include "nn/rates.h"
#include "optim/served.h"

namespace skein::apps {

namespace {

// Where peers can see it, x and g themselves lie in memory shared with them.
nn::Flat lay_out(Run& run) {
  const Config& c = run.config;
  const Setup& s = run.setup;
  const nn::Flat flat =
      nn::flatten(*s.model, s.device.is_cuda() ? allocator(s.device) : run.comm().allocator());
  if (!c.weights.empty()) {
    const std::string changed = import_for_tuning(c.weights, *s.model, s.data.train->classes());
    run.progress.say(changed.empty() ? "weights from " + c.weights : changed);
  }
  // On a GPU the layers of a low-precision run take their weights from a copy that the step refreshes.
  // The CPU's convolutions reorder weights at each call, whatever type they come in: a copy would be
  // written for nothing.
  if (s.device.is_cuda() && s.activations != kF32) keep_narrow(flat.x, s.activations);
  return flat;
}

std::unique_ptr<optim::Rule> rule_of(const Config& c, const nn::Flat& flat, const LossScale* scale) {
  const nn::Rates rates{
      .layer_decay = c.layer_decay, .head = c.head_rate, .norms = c.norm_rate, .decay_all = c.decay_all};
  return optim::make_rule(c.optimizer, options_of(c),
                          {.like = flat.x,
                           .segments = nn::segments_of(flat, rates),
                           .weight_decay = float(c.weight_decay),
                           .on = scale ? scale->on() : nullptr});
}

// A warm-up longer than a fifth of the run would leave little to warm up for.
optim::Schedule schedule_of(const Config& c, const Setup& s) {
  const double rate = c.reference_batch > 0 ? optim::scale_rate(c.lr, s.global_batch, c.reference_batch,
                                                                optim::rule_row(c.optimizer).growth)
                                            : c.lr;
  const double epochs = double(s.total_steps) / double(s.steps_per_epoch);
  const double warmup = std::min(c.warmup_epochs, epochs / 5);
  return optim::parse_schedule(c.lr_schedule, rate, s.steps_per_epoch, epochs, warmup);
}

// The flags, and what algorithms know of the run they are in.
optim::Options strategy_options(const Config& c, const Setup& s, const optim::Schedule& schedule) {
  optim::Options o = options_of(c, s.steps_per_epoch);
  o.set("total-steps", text(s.total_steps));
  o.set("warmup-steps", text(schedule.warmup));
  return o;
}

// Shares differ where the global batch is not divisible, or by --batch-size. Shards are unequal by intent.
double weight_of(const Setup& s) {
  if (!s.portions || !s.portions->shards().empty()) return 0;
  if (s.portions->even() && s.global_batch % s.place.world == 0) return 0;
  return double(s.portions->share_of(s.place.rank)) / double(s.global_batch);
}

}  // namespace

Learning::Learning(Run& r, Batches& batches, Traces& traces)
    : Learning(r, batches, traces, MemoryFor("parameters, gradients and what optimizer and algorithm keep")) {
}

Learning::Learning(Run& r, Batches& batches, Traces& traces, const MemoryFor&)
    : run(r),
      flat(lay_out(r)),
      gradient(r, batches, traces, flat),
      rule(rule_of(r.config, flat, gradient.scale())),
      recorded_rule(gradient.graphs().recorded(*rule)),
      schedule(schedule_of(r.config, r.setup)),
      strategy(optim::make_strategy(r.config.algorithm, strategy_options(r.config, r.setup, schedule),
                                    r.setup.place.world)) {
  gradient.take_uphill(rule->ascent());
  if (run.setup.place.has_server) optim::with_server(*strategy).reach(run.survivors.hub());
  regroup();
  if (r.config.ema > 0) ema.emplace(r.config.ema, flat);
}

void Learning::regroup() {
  worker.emplace(optim::Worker{
      .x = flat.x,
      .g = flat.g,
      .buffers = flat.buffers,
      .rule = recorded_rule ? *recorded_rule : *rule,
      .comm = run.comm(),
      .oracle = [this](const optim::Slices& slices) { return gradient.of_next_batch(slices); }});
  weigh();
}

// A difference of one image is worth another weight in a mean, but not another rate.
void Learning::weigh() {
  const Setup& s = run.setup;
  const bool rates = optim::strategy_row(run.config.algorithm).model != optim::Model::kMean;
  worker->weight = rates && s.portions && s.portions->even() ? 0 : weight_of(s);
  gain_ = rates && worker->weight != 0 ? worker->weight * double(s.place.world) : 1;
}

void Learning::start() {
  const MemoryFor what("parameters, gradients and what optimizer and algorithm keep");
  together(run.comm(), [&] { strategy->start(*worker); });
}

void Learning::see_center() {
  if (run.apart) strategy->write_model(*worker, flat.x.clone());
}

void Learning::before_step() {
  worker->lr = schedule.at(run.k) * gain_;
  const data::Portions& p = *run.setup.portions;
  worker->share = double(p.samples(run.k, run.setup.place.rank)) / double(p.samples(run.k));
}

void Learning::after_step() {
  gradient.end_step();
  if (ema) ema->update(run.asynchronous ? worker->x : strategy->contribution(*worker), worker->buffers);
}

ConsensusModel Learning::consensus(bool of_averages) {
  return {run.config, run.setup, flat, *strategy, *worker, of_averages ? &*ema : nullptr};
}

optim::Shared Learning::shared() {
  optim::Shared shared = optim::shared_states(*strategy);
  if (shared.arrived)
    shared.arrived = [arrived = std::move(shared.arrived)](Archive& a) {
      Under s(a, "strategy.");
      arrived(s);
    };
  return shared;
}

void Learning::visit(Archive& a) {
  a("x", flat.x);
  if (flat.buffers) a("buffers", flat.buffers);
  Under r(a, "rule."), s(a, "strategy."), m(a, "meters.");
  rule->visit(r);
  strategy->visit(s);
  gradient.meters().visit(m);
  if (gradient.scale()) {
    Under scale(a, "loss_scale.");
    gradient.scale()->visit(scale);
  }
  if (ema) {
    Under average(a, "ema.");
    ema->visit(average);
  }
}

}  // namespace skein::apps
