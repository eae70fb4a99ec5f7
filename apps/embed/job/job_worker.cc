// Makes a worker from options given as text. All workers write and read a checkpoint together.
#include "apps/embed/job/job_worker.h"

#include <algorithm>

#include "apps/base/together.h"
#include "apps/embed/calls.h"

namespace skein::apps {
namespace {

float decay_of(const optim::RuleRow& row) {
  return row.name == std::string("sgd") ? 0 : float(row.weight_decay);  // as torch.optim.SGD
}

optim::Options options_from(const optim::Values& values) {
  optim::Options all;
  for (const auto& [name, value] : values) all.set(name, value);
  return all;
}

WorkerOptions worker_options(const JobWorkerOptions& o) {
  const optim::RuleRow& row = optim::rule_row(o.optimizer);
  const optim::Options flags = options_from(o.flags);
  const double momentum = flags.number("momentum", 0.9);
  return {.algorithm = o.algorithm,
          .optimizer = row.name,
          .lr = o.lr.value_or(float(row.lr)),
          .momentum = float(momentum),
          .weight_decay = o.weight_decay.value_or(decay_of(row)),
          .nesterov = flags.flag("nesterov", momentum != 0),
          .seed = o.seed,
          .flags = flags};
}

// A flag that neither the algorithm nor the optimizer reads is taken for a misspelling.
void check_flags(const JobWorkerOptions& o, const WorkerOptions& w, int world) {
  optim::Options of_rule = w.flags;
  of_rule.set("nesterov", w.nesterov ? "true" : "false");
  optim::Values known = optim::values_in_force(w.algorithm, w.flags, world);
  known.merge(optim::values_of_rule(w.optimizer, of_rule));
  for (const char* own : {"seed", "optimizer"}) known.erase(own);
  for (const auto& [name, value] : o.flags) {
    if (known.contains(name)) continue;
    std::string all;
    for (const auto& [flag, in_force] : known) all += (all.empty() ? "" : ", ") + flag;
    throw BadOption(
        text(w.algorithm, " does not read ", name, ", nor does ", w.optimizer, "; they read: ", all));
  }
}

}  // namespace

JobWorker::JobWorker(std::shared_ptr<EmbeddedJob> job, const WorkerVectors& v, const JobWorkerOptions& o)
    : job_(std::move(job)),
      o_(o),
      slices_(v.g, o.sizes.empty() ? std::vector<int64_t>{v.g.size()} : o.sizes) {
  comm::Communicator& all = job_->peers();
  WorkerOptions w;
  together(all, [&] { check_flags(o_, w = worker_options(o_), all.size()); });
  const std::string mine = said(w), first = from_rank_zero(all, mine);
  together(all, [&] {  // a worker with other options would leave the others waiting
    if (mine != first) throw BadOption("worker 0 makes " + first + "; this worker makes " + mine);
  });
  all.broadcast(v.x, 0);
  if (v.buffers && v.buffers.size() > 0) all.broadcast(v.buffers, 0);
  worker_ = std::make_unique<VectorWorker>(v, all, w);
  job_->enter(*this);
}

JobWorker::~JobWorker() { job_->exit(*this); }

std::string JobWorker::said(const WorkerOptions& w) const {
  std::string all = text(w.algorithm, " over ", o_.layout, " by ", w.optimizer, ", lr ", w.lr,
                         ", weight decay ", w.weight_decay, ", seed ", w.seed);
  for (const auto& [name, value] : o_.flags) all += text(", ", name, ' ', value);
  return all;
}

VectorWorker& JobWorker::present() const {
  if (job_->left() || !worker_) throw Error("this worker's job has been left");
  return *worker_;
}

double JobWorker::step(const Gradient& gradient) {
  struct Within {
    JobWorker& me;
    explicit Within(JobWorker& w) : me(w) { me.in_step_ = true; }
    ~Within() { me.in_step_ = false, me.slices_.abandon(); }
  };
  VectorWorker& worker = present();
  demand(!in_step_, "a step is no part of another one");
  const Within within(*this);
  const auto oracle = [&](const optim::Slices& slices) {
    slices_.begin(slices);
    const float loss = gradient();
    slices_.end();
    return Tensor::of<float>({1}, {loss});
  };
  return double(worker.step(oracle).item());
}

void JobWorker::ready(size_t parameter) { slices_.ready(parameter); }
void JobWorker::set_rate(float lr) { present().set_rate(lr); }
void JobWorker::show_model() { present().show_model(); }
void JobWorker::hide_model() { present().hide_model(); }
double JobWorker::finish() { return present().finish(); }

void JobWorker::save(const std::string& directory, int keep) {
  VectorWorker& w = present();
  comm::Communicator& all = job_->peers();
  w.settle();
  Checkpoints checkpoints(directory, keep);
  const int64_t k = w.steps();
  const auto first = [&](const auto& f) {
    together(all, [&] {
      if (all.rank() == 0) f();
    });
  };
  try {
    first([&] { checkpoints.begin(k); });
    together(all, [&] { checkpoints.write(k, all.rank(), [&](Archive& a) { w.visit(a); }); });
    first([&] { checkpoints.commit(k, identity()); });
  } catch (const Error&) {
    if (all.rank() == 0) checkpoints.abandon(k);
    throw;
  }
}

void JobWorker::load(const std::string& path) {
  VectorWorker& w = present();
  comm::Communicator& all = job_->peers();
  w.settle();
  together(all, [&] {
    load_checkpoint(find_checkpoint(path), all.rank(), identity(), [&](Archive& a) { w.visit(a); });
  });
}

std::map<std::string, double> JobWorker::figures() const {
  const int64_t steps = present().steps();
  const comm::Traffic t = job_->peers().meter().traffic();
  return {{"steps", double(steps)},
          {"messages", double(t.messages)},
          {"bytes", double(t.bytes)},
          {"waited_s", t.waited},
          {"in_flight_s", t.in_flight}};
}

Identity JobWorker::identity() const {
  return {.model = "parameters",
          .layout = o_.layout,
          .algorithm = o_.algorithm,
          .world = job_->peers().size(),
          .data = "of the caller",
          .seed = o_.seed,
          .global_batch = 0};
}

optim::Values defaults_of_rule(const std::string& name) {
  const optim::RuleRow& row = optim::rule_row(name);
  optim::Values all = optim::values_of_rule(row.name, {});
  if (all.contains("momentum")) all["momentum"] = "0.9", all["nesterov"] = "true";
  all["lr"] = text(row.lr), all["weight-decay"] = text(decay_of(row));
  return all;
}

}  // namespace skein::apps
