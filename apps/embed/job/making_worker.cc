// Makes the worker of an epoch from options given as text, the same on all workers.
#include <algorithm>

#include "apps/base/together.h"
#include "apps/checkpoint/reshare.h"
#include "apps/config/algorithm_values.h"
#include "apps/embed/calls.h"
#include "apps/embed/job/job_worker.h"
#include "comm/communicator/unrounded.h"
#include "comm/membership/council.h"

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

// In words that are equal where workers are made alike.
std::string said(const JobWorkerOptions& o, const WorkerOptions& w) {
  std::string all = text(w.algorithm, " over ", o.layout, " by ", w.optimizer, ", lr ", w.lr,
                         ", weight decay ", w.weight_decay, ", seed ", w.seed);
  for (const auto& [name, value] : o.flags) all += text(", ", name, ' ', value);
  return all;
}

// Fewer workers may not be able to have the graph that was asked for; then they take the algorithm's own.
WorkerOptions options_in(const EmbeddedJob& job, const JobWorkerOptions& o) {
  const int world = job.peers().size();
  if (job.council() && optim::strategy_row(o.algorithm).asynchronous())
    throw BadOption(o.algorithm +
                    ": its workers are at different steps, so an elastic job of another program cannot go on "
                    "without one of them; choose another algorithm, or leave out elastic");
  try {
    return checked_options(o, world);
  } catch (const BadOption&) {
    if (!job.is_later_epoch()) throw;
    JobWorkerOptions fewer = o;
    drop_flags_of_number(fewer.flags);
    return checked_options(fewer, world);
  }
}

}  // namespace

WorkerOptions checked_options(const JobWorkerOptions& o, int world) {
  WorkerOptions w = worker_options(o);
  check_flags(o, w, world);
  return w;
}

// The worker of this epoch, which goes on with what its members have taken along. A newcomer that cannot take
// part, because it is made in another way, is alone with its error.
void JobWorker::make(const std::optional<optim::Snapshot>& taken_along) {
  comm::Council* const council = job_->council();
  agreed_ = !job_->is_later_epoch();
  if (!job_->is_later_epoch()) return begin();
  WorkerOptions w = options_in(*job_, o_);
  const std::string mine = said(o_, w), first = first_said(job_->peers(), taken_along ? mine : "");
  if (first.empty() && council->now().step == 0) {  // workers were lost before any had begun
    begin();
    return void(council->restored());
  }
  if (!first.empty() && mine != first)
    throw BadOption("the job's workers make " + first + "; this worker makes " + mine);
  w.lr = rate_.value_or(w.lr);
  worker_ = std::make_unique<VectorWorker>(vectors_, job_->peers(), w, council);
  inherit(taken_along);
}

// All with worker 0's values.
void JobWorker::begin() {
  comm::Communicator& all = job_->peers();
  WorkerOptions w;
  together(all, [&] { w = options_in(*job_, o_); });
  const std::string mine = said(o_, w), first = from_rank_zero(all, mine);
  together(all, [&] {  // a worker with other options would leave the others waiting
    if (mine != first) throw BadOption("worker 0 makes " + first + "; this worker makes " + mine);
  });
  {
    const comm::Unrounded exactly(all);  // worker 0 would have other bits than the others
    all.broadcast(vectors_.x, 0);
    if (vectors_.buffers && vectors_.buffers.size() > 0) all.broadcast(vectors_.buffers, 0);
  }
  worker_ = std::make_unique<VectorWorker>(vectors_, all, w, job_->council());
}

void JobWorker::inherit(const std::optional<optim::Snapshot>& taken_along) {
  Pool pool;
  if (taken_along) pool.add(taken_along->fields());
  pool.unite(job_->peers(), taken_along.has_value());
  load_pooled(pool, o_.algorithm, job_->peers().rank(), Differing::kKeepOwn,
              [&](Archive& a) { worker_->visit_state(a); });
  worker_->go_on_from(job_->council()->restored());
}

Identity identity_of(const JobWorkerOptions& o, int world) {
  return {.model = "parameters",
          .layout = o.layout,
          .algorithm = o.algorithm,
          .world = world,
          .data = "of the caller",
          .seed = o.seed,
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
