// The flags that such a run reads are listed, so that a new flag is refused until someone makes it read that.
#include "apps/flat/flat_flags.h"

#include <algorithm>
#include <set>

#include "apps/config/algorithm_values.h"
#include "optim/strategy.h"

namespace skein::apps {
namespace {

[[noreturn]] void refuse(const Config& c, const std::string& flag, const std::string& why) {
  throw BadOption(text(c.origin(flag).place, ": ", why));
}

// A quadratic has one tensor, and no pictures.
bool is_read(const Flag& f, const GradientPlan& g) {
  static const std::set<std::string> read = {
      "algorithm", "workers",     "batch-size",    "global-batch",  "steps",     "optimizer",
      "lr",        "lr-schedule", "warmup-epochs", "momentum",      "nesterov",  "weight-decay",
      "seed",      "wire",        "simulate",      "deterministic", "deadline",  "wait",
      "elastic",   "output",      "log-every",     "progress",      "predicted", "reference-batch"};
  // There are no running statistics, and Muon steps a vector as AdamW does.
  static const std::set<std::string> own_of_models = {"bn-policy", "muon-momentum", "muon-iterations"};
  if (f.of_algorithm()) return !own_of_models.contains(f.name);
  const bool of_ghosts = f.name == "model" || f.name == "image-size" || f.name == "slice-mb";
  return of_ghosts ? g.kind == GradientPlan::Kind::kGhost : read.contains(f.name);
}

// What describes every such run, as a file that is also for other runs may.
bool holds_anyway(const Flag& f, const std::string& value) {
  static const std::set<std::pair<std::string, std::string>> all = {
      {"epochs", "0"},     {"device", "cpu"},         {"augment", "none"},      {"cuda-graphs", "off"},
      {"eval-every", "0"}, {"checkpoint-every", "0"}, {"tensorboard", "false"}, {"bn-policy", "recompute"}};
  return all.contains({f.name, value});
}

}  // namespace

const char* gradient_word(const GradientPlan& g) {
  return g.kind == GradientPlan::Kind::kGhost ? "ghost" : "quadratic";
}

void refuse_flat(const Config& c, const GradientPlan& g, bool resumes) {
  const std::string gradients = text("gradient = \"", gradient_word(g), "\" in ", c.simulate);
  if (resumes)
    throw BadOption(text("--resume: does not go with ", gradients, ", whose runs leave no checkpoint; ",
                         "start it anew, with another --output"));
  for (const Flag& f : flags())
    if (asks_for(c, f) && !is_read(f, g) && !holds_anyway(f, value_of(c, f)))
      refuse(c, f.name,
             text("does not go with ", gradients, ", whose runs have no data, no model and no device; ",
                  "leave it out"));
  if (!c.batch_size.is_number())
    refuse(c, "batch-size", text("shares that differ do not go with ", gradients, "; give one number"));
  if (g.kind == GradientPlan::Kind::kQuadratic && c.optimizer == "muon")
    refuse(c, "optimizer",
           text("muon orthogonalizes matrices, and ", gradients, " has one vector, which it would step as ",
                "adamw does; give --optimizer adamw"));
  if (c.steps <= 0) throw BadOption(text("--steps is needed: ", gradients, " has no epochs"));
  refuse_flat_algorithm(c, g, gradients);
}

void settle_flat(Config& c) {
  if (c.origin("reference-batch").source == Source::kDefault) c.reference_batch = 0;
}

// What needs numbers, or a worker without a gradient.
void refuse_flat_algorithm(const Config& c, const GradientPlan& g, const std::string& gradients) {
  if (optim::has_dedicated_server(options_of(c)))
    refuse(c, "servers", text("dedicated does not go with ", gradients, "; leave it out"));
  if (g.kind != GradientPlan::Kind::kGhost) return;
  if (c.algorithm == "lsgd")
    refuse(c, "algorithm",
           text("lsgd chooses its leaders by their losses, which ", gradients,
                " has none of; take \"quadratic\" or \"real\""));
  if (c.algorithm == "sparta" || c.algorithm == "sparseloco")
    refuse(c, "algorithm",
           text(c.algorithm, " sends a few of the model's numbers, and ", gradients,
                " has too few to choose from; take \"quadratic\" or \"real\""));
  if (optim::codec_of(options_of(c)))
    refuse(c, "wire", text(c.wire, " codes numbers, which ", gradients, " has none of; take fp32 or bf16"));
}

}  // namespace skein::apps
