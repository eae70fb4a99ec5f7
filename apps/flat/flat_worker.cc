// Numbers are computed at once; then the time passes that the world file gives for them.
#include "apps/flat/flat_worker.h"

#include "apps/config/algorithm_values.h"
#include "apps/launch/interrupt.h"
#include "engine/vectors/vec.h"

namespace skein::apps {
namespace {

std::optional<Quadratic> quadratic_of(const FlatTask& t, const Member& me) {
  using Kind = GradientPlan::Kind;
  if (t.world.gradient.kind != Kind::kQuadratic) return {};
  return Quadratic(t.world.gradient, uint64_t(t.config.seed), me.rank, me.world);
}

// Messages of collectives move on between the model's tensors, as in a run that computes.
bool has_messages(const Member& me) { return me.world <= comm::sim::kMostByMessages; }

// Such a run ends with an error, and leaves no checkpoint, so states of whole steps are kept only where the
// time that it takes to copy them counts.
WorkerOptions options_for(const FlatTask& t) {
  const Config& c = t.config;
  WorkerOptions o{.algorithm = c.algorithm,
                  .optimizer = c.optimizer,
                  .lr = float(t.schedule.at(0)),
                  .momentum = float(c.momentum),
                  .weight_decay = float(c.weight_decay),
                  .nesterov = c.nesterov,
                  .seed = uint64_t(c.seed),
                  .whole_steps = t.world.pace.vector > 0,
                  .flags = options_of(c, c.steps)};
  o.flags.set("total-steps", text(c.steps));
  o.flags.set("warmup-steps", text(t.schedule.warmup));
  return o;
}

}  // namespace

FlatWorker::FlatWorker(const FlatTask& t, const Member& me)
    : task_(t),
      me_(me),
      x_(Tensor::zeros({t.model.elements})),
      quadratic_(quadratic_of(t, me)),
      worker_({.x = x_, .g = Tensor::zeros({t.model.elements})}, me.comm, options_for(t)),
      parts_(has_messages(me) ? t.model.parts : t.model.sliced_parts()) {
  costs_.begin(me.comm);
}

Tensor FlatWorker::gradient(const optim::Slices& slices) {
  comm::sim::Pace& pace = me_.simulated->pace;
  pace.begin();
  const Tensor& g = worker_.gradient();
  if (quadratic_) quadratic_->gradient(g, x_, k_);
  const double from = comm::clock_seconds();
  if (!slices && (parts_.size() == 1 || !has_messages(me_))) {  // nothing happens in between
    pace.whole();
    const double took = comm::clock_seconds() - from;
    costs_.seconds.forward += pace.forward_share() * took;
    costs_.seconds.backward += (1 - pace.forward_share()) * took;
    return loss();
  }
  pace.forward(1);
  const double back = comm::clock_seconds();
  for (const FlatPart& p : parts_) {
    pace.backward(p.share);
    me_.comm.progress();
    if (!slices) continue;
    for (const nn::Slice& one : p.slices)
      if (one.end > one.begin) slices.ready(g.view({one.end - one.begin}, one.begin));
  }
  costs_.seconds.forward += back - from;
  costs_.seconds.backward += comm::clock_seconds() - back;
  if (slices) slices.complete();
  return loss();
}

Tensor FlatWorker::loss() const {
  return Tensor::of<float>({1}, {quadratic_ ? float(quadratic_->loss(x_)) : 0.f});
}

void FlatWorker::step() {
  worker_.set_rate(float(task_.schedule.at(k_)));
  StepCosts costs(costs_, me_.comm);
  worker_.step([this](const optim::Slices& slices) { return gradient(slices); });
  me_.simulated->pace.vectors(double(moved_.take()) * task_.model.stands_for);
  costs.end();
  ++k_;
}

void FlatWorker::train() {
  for (const int64_t steps = task_.config.steps; k_ < steps;) {
    if (interrupted()) throw Interruption();
    step();
    if (me_.rank > 0) continue;
    const std::optional<double> loss = quadratic_ ? std::optional(quadratic_->loss(x_)) : std::nullopt;
    if (loss && !(*loss < 1e30))
      throw Error(
          text("the loss is ", *loss, " after step ", k_, ": training has diverged; try a lower --lr"));
    task_.observer.step(*me_.simulated, k_, loss, costs_);
  }
  task_.observer.ended(me_.rank, costs_);
  end();
}

// No worker leaves before all have taken their last step. A ghost's vectors have no meaning, so their mean
// takes no time.
void FlatWorker::end() {
  me_.comm.set_deadline(comm::kForever);
  if (!quadratic_) return me_.comm.barrier();
  const double apart = worker_.finish();
  if (me_.rank == 0) task_.observer.model(quadratic_->loss(x_), apart, x_);
}

}  // namespace skein::apps
