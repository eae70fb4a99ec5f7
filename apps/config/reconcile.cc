// Settles alternatives, checks which flags go together, and gives each optimizer its own defaults.
#include "apps/config/reconcile.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "apps/config/predicted.h"
#include "data/sources/split.h"
#include "engine/vectors/loss_scale.h"
#include "engine/words/file.h"
#include "engine/words/find_row.h"
#include "nn/models.h"
#include "optim/schedule.h"
#include "optim/strategy.h"

namespace skein::apps {
namespace {

// Two flags that answer the same question. Giving both is an error, unless one comes from a stronger source;
// then the other falls back to `nothing`.
void settle(Config& c, const Flags& table, const char* a, const char* b, const char* nothing) {
  const Flag *fa = find_flag(table, a), *fb = find_flag(table, b);
  if (value_of(c, *fa) == nothing || value_of(c, *fb) == nothing) return;
  const Origin from_a = c.origin(a), from_b = c.origin(b);
  if (from_a.source == from_b.source)
    throw BadOption(text(from_b.place, " ", value_of(c, *fb), " contradicts ", from_a.place, " ",
                         value_of(c, *fa), "; give one of the two"));
  assign(c, from_a.source < from_b.source ? *fa : *fb, nothing,
         from_a.source < from_b.source ? from_a : from_b);
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void refuse(const Config& c, const std::string& flag, const std::string& why) {
  throw BadOption(c.origin(flag).place + " " + why);
}

// Replaces a run's directory by the model in it.
void look_into_run(Config& c) {
  namespace fs = std::filesystem;
  if (c.weights.empty() || !is_directory(c.weights)) return;
  const std::string model = fs::path(c.weights) / "model.safetensors";
  if (!fs::exists(model))
    refuse(c, "weights", c.weights + ": there is no model.safetensors in it; a run leaves one when it ends");
  c.weights = model;
}

// --join enters a running job, whose beginner has already decided --resume, --workers and --hosts.
void reconcile_membership(Config& c, const Flags& table) {
  const auto given = [&](const char* flag) { return asks_for(c, *find_flag(table, flag)); };
  if (!c.join.empty()) {
    for (const char* flag : {"workers", "hosts", "eval-only", "weights"})
      if (given(flag))
        refuse(c, "join", text("enters a running job as one more worker; leave out ", c.origin(flag).place));
    if (c.origin("elastic").source < c.origin("join").source) c.elastic = "on";
    if (c.elastic == "off") refuse(c, "join", "enters an elastic job; leave out --elastic off");
  }
  for (const char* flag : {"min-workers", "max-workers", "restarts"})
    if (given(flag) && c.elastic == "off") refuse(c, flag, "is of elastic runs; leave out --elastic off");
  if (c.max_workers > 0 && c.min_workers > c.max_workers)
    refuse(c, "min-workers", text(c.min_workers, " is more than --max-workers ", c.max_workers));
  if (c.elastic == "off" || !given("workers")) return;
  if (c.min_workers > c.workers)
    refuse(c, "min-workers", text(c.min_workers, " is more than --workers ", c.workers));
  if (c.max_workers > 0 && c.workers > c.max_workers)
    refuse(c, "max-workers", text(c.max_workers, " is less than --workers ", c.workers));
}

// Results depend on the order of messages, and on kernels chosen by measured time.
void reconcile_order(Config& c, const Flags& table) {
  const bool asynchronous = optim::strategy_row(c.algorithm).asynchronous();
  settle(c, table, "record", "replay", "");
  for (const char* flag : {"record", "replay"})
    if (!asynchronous && !value_of(c, *find_flag(table, flag)).empty())
      refuse(c, flag, text("is for asynchronous algorithms; ", c.algorithm, " is reproducible anyway"));
  gpu_of(c);
  if (c.deterministic && c.autotune)
    refuse(c, "autotune", "chooses by measured time, which is not reproducible; leave out one of the two");
  if (c.deterministic && c.replay.empty() && asynchronous)
    refuse(c, "deterministic",
           text("cannot be: in ", c.algorithm,
                " the order of arrivals decides; --replay FILE repeats a run of it"));
}

// A rate, a weight decay or a flag from a weaker source than the optimizer's was meant for another optimizer.
// An optimizer that is merely repeated counts from the source that named it first.
void reconcile_optimizer(Config& c, const Flags& table) {
  const optim::RuleRow& row = optim::rule_row(c.optimizer);
  const Source chosen = c.origin("optimizer").since;
  if (c.origin("lr").source < chosen) c.lr = row.lr;
  if (c.origin("weight-decay").source < chosen) c.weight_decay = row.weight_decay;
  for (const Flag& f : table) {
    if (f.optimizers.empty() || holds(f.optimizers, c.optimizer)) continue;
    const Source from = c.origin(f.name).source;
    const bool given = f.of_algorithm() ? c.of_algorithm.contains(f.name) : from > Source::kResumed;
    if (given && from >= chosen)
      refuse(c, f.name,
             text("is not read by --optimizer ", c.optimizer, "; it belongs to ", joined(f.optimizers)));
    c.of_algorithm.erase(f.name);
  }
}

// The residual of a codec is as large as the loss scale of the gradients, so the scale must not change.
void reconcile_wire(const Config& c) {
  optim::Options o;
  o.set("wire", c.wire);
  const Codec codec = optim::codec_of(o);
  if (codec && (c.algorithm == "allreduce" || c.algorithm == "post-local") &&
      (c.loss_scale == "dynamic" || (c.loss_scale == "auto" && c.precision == "fp16")))
    refuse(c, "wire",
           text(c.wire, " keeps what it has not sent of a gradient, which a loss scale that changes makes ",
                "wrong; take --precision bf16, or a --loss-scale that stays"));
}

// What --batch-size and --global-batch say together. If they disagree, the weaker source gives way.
void reconcile_whole_batch(Config& c) {
  const BatchSize& b = c.batch_size;
  const Source each = c.origin("batch-size").source, whole = c.origin("global-batch").source;
  if (c.global_batch == 0 || each <= Source::kResumed || b.automatic) return;
  if (!b.shares.empty()) {
    const Count sum = std::accumulate(b.shares.begin(), b.shares.end(), Count(0));
    if (sum != c.global_batch)
      refuse(c, "batch-size",
             text(b.words(), " adds up to ", sum, ", not to --global-batch ", c.global_batch));
  } else if (each > whole) {
    c.global_batch = 0;
  } else if (each == whole && b.most != (c.global_batch + c.workers - 1) / c.workers) {
    refuse(c, "batch-size",
           text(b.most, " and --global-batch ", c.global_batch, " say the same thing twice; give ",
                "one of the two, or shares as in --batch-size 64,64,32, or --batch-size auto"));
  }
}

// Shares by hand or by speed are parts of one common order, whose means are weighed by images.
void reconcile_shares(Config& c) {
  const BatchSize& b = c.batch_size;
  if (b.is_number()) return;
  const std::string said = b.words();
  if (c.split != "iid")
    refuse(c, "batch-size",
           text(said, " shares the steps of one common order of images, and with --split ", c.split,
                " each worker has its own; give one number"));
  if (c.algorithm == "lsgd")
    refuse(c, "batch-size",
           text(said, ": lsgd follows the best worker, whole, so there is no mean to weigh by images; ",
                "give one number: its leases let fast workers take more steps"));
  if (b.automatic && c.deterministic)
    refuse(c, "batch-size",
           text("auto shares by measured time, which is not reproducible; give the shares, which ",
                "such a run names at its start, as in --batch-size 64,64,32"));
  if (b.automatic && !(c.record.empty() && c.replay.empty()))
    refuse(c, "batch-size",
           text("auto shares by measured time, and --", c.record.empty() ? "replay" : "record",
                " is of runs that repeat to the bit; give the shares, as in --batch-size 64,64,32"));
  // Other numbers of workers are known when they have met; a resumed run divides its batch again.
  const bool known =
      c.origin("workers").source > Source::kResumed && c.origin("batch-size").source > Source::kResumed;
  if (!b.automatic && known) global_batch_of(c, c.workers);
}

void reconcile_momentum(Config& c, const Flags& table) {
  if (!c.nesterov || c.momentum != 0 || !holds(find_flag(table, "nesterov")->optimizers, c.optimizer)) return;
  const Source said = c.origin("nesterov").source;
  if (said >= c.origin("momentum").source && said != Source::kDefault)
    refuse(c, "nesterov", "needs --momentum above 0");
  c.nesterov = false;
}

// Every flag that the algorithm requires is given, and none that only other algorithms read.
void reconcile_own_flags(const Config& c, const Flags& table) {
  for (const Flag& f : table) {
    const bool given = c.of_algorithm.contains(f.name);
    if (!given && holds(f.required_by, c.algorithm) && c.origin("algorithm").source != Source::kResumed)
      throw BadOption(text("--algorithm ", c.algorithm, " needs --", f.name, ": ", f.help));
    if (!given || f.algorithms.empty() || holds(f.algorithms, c.algorithm)) continue;
    refuse(c, f.name,
           text("is not read by --algorithm ", c.algorithm, "; it belongs to ", joined(f.algorithms)));
  }
}

// Words that are parsed where they are used, which may be minutes after the start.
void check_words(const Config& c) {
  nn::model_row(c.model);
  data::parse_split(c.split);
  make_loss_scale(c.loss_scale, activations_of(c), kCpu);
  const double epochs = 1e9;  // the length does not matter here
  optim::parse_schedule(c.lr_schedule, c.lr, 1, epochs, 0);
  parse_every(c);
  Predicted::parse(c.predicted, c.origin("predicted").place);
}

}  // namespace

void reconcile(Config& c, const Flags& table) {
  c.model = hyphens(c.model);
  c.algorithm = hyphens(c.algorithm);
  look_into_run(c);
  optim::strategy_row(c.algorithm);
  settle(c, table, "epochs", "steps", "0");
  reconcile_order(c, table);
  if (c.epochs == 0 && c.steps == 0 && !c.eval_only)
    refuse(c, "epochs", "and --steps are both 0; say how long to train with one of them");
  reconcile_optimizer(c, table);
  reconcile_momentum(c, table);
  reconcile_wire(c);
  reconcile_whole_batch(c);
  reconcile_shares(c);
  if (c.eval_only && c.weights.empty())
    refuse(c, "eval-only", "needs --weights FILE: the model.safetensors of a run");
  reconcile_membership(c, table);
  reconcile_own_flags(c, table);
  check_words(c);
}

}  // namespace skein::apps
