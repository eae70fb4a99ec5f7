// The files are the main thread's, before the world begins and after it has ended.
#include "apps/flat/flat_run.h"

#include <algorithm>

#include "apps/checkpoint/run_directory.h"
#include "apps/config/algorithm_values.h"
#include "apps/flat/flat_worker.h"
#include "apps/launch/interrupt.h"

namespace skein::apps {
namespace {

using Kind = GradientPlan::Kind;

const char* word_of(const GradientPlan& g) { return g.kind == Kind::kGhost ? "ghost" : "quadratic"; }

// There are no epochs: all of the run is one.
optim::Schedule schedule_of(const Config& c) {
  const bool scales = c.reference_batch > 0 && c.origin("reference-batch").source > Source::kDefault;
  const double rate = scales ? optim::scale_rate(c.lr, global_batch_of(c, c.workers), c.reference_batch,
                                                 optim::rule_row(c.optimizer).growth)
                             : c.lr;
  return optim::parse_schedule(c.lr_schedule, rate, c.steps, 1, std::min(c.warmup_epochs, 0.2));
}

void take_directory(RunDirectory& home, const Config& c, const GradientPlan& g) {
  if (c.output.empty()) return home.make(g.kind == Kind::kGhost ? c.model : "vector", word_of(g));
  home.hold(c.output, 0, [](const std::string& line) { say(stdout, line + '\n'); });
  refuse_a_run(c.output);
}

int train_flat(const FlatTask& task, const JobOptions& job, bool silent) {
  const auto work = [&](const Member& me) {
    FlatWorker(task, me).train();
    return 0;
  };
  return run_simulated(job, task.world, work,
                       {.stands_for = task.model.stands_for, .fibers = true, .silent = silent});
}

// What needs numbers, or a worker without a gradient.
void refuse_algorithm(const Config& c, const GradientPlan& g, const std::string& gradients) {
  const auto refuse = [&](const char* flag, const std::string& why) {
    throw BadOption(text(c.origin(flag).place, ": ", why));
  };
  if (optim::has_dedicated_server(options_of(c)))
    refuse("servers", text("dedicated does not go with ", gradients, "; leave it out"));
  if (g.kind != Kind::kGhost) return;
  if (c.algorithm == "lsgd")
    refuse("algorithm", text("lsgd chooses its leaders by their losses, which ", gradients,
                             " has none of; take \"quadratic\" or \"real\""));
  if (optim::codec_of(options_of(c)))
    refuse("wire", text(c.wire, " codes numbers, which ", gradients, " has none of; take fp32 or bf16"));
}

}  // namespace

void refuse_flat(const Config& c, const GradientPlan& g) {
  const auto refuse = [&](const char* flag, const std::string& why) {
    throw BadOption(text(c.origin(flag).place, ": ", why));
  };
  const std::string gradients = text("gradient = \"", word_of(g), "\" in ", c.simulate);
  for (const char* flag : {"data", "weights", "resume", "record", "replay", "ema", "export-onnx", "trace",
                           "split", "accumulate", "patience", "epochs"})
    if (c.origin(flag).source > Source::kDefault)
      refuse(flag, text("does not go with ", gradients, ", whose runs have neither data nor a model"));
  if (!c.batch_size.is_number())
    refuse("batch-size", text("shares that differ do not go with ", gradients, "; give one number"));
  if (c.steps <= 0) throw BadOption(text("--steps is needed: ", gradients, " has no epochs"));
  refuse_algorithm(c, g, gradients);
}

int run_flat(const Config& c, const JobOptions& job, const WorldFile& world) {
  const FlatModel model = flat_model(c, world.gradient);
  const optim::Schedule schedule = schedule_of(c);
  RunDirectory home(0);
  take_directory(home, c, world.gradient);
  outlive_readers();
  Progress progress(stdout, showing(c.progress, stdout));
  FlatRecord record(c, model, schedule, home.path(), progress);
  progress.say(text(model.words, "; ", c.workers, c.workers == 1 ? " worker" : " workers", " by ",
                    c.algorithm, ", ", c.steps, c.steps == 1 ? " step" : " steps", "; ", home.path()));
  int status = 1;
  try {
    status = train_flat({c, world, model, schedule, record}, job, false);
  } catch (...) {
    progress.finish();
    record.write_unfinished();
    throw;
  }
  progress.finish();
  status == 0 ? record.write() : record.write_unfinished();
  return status;
}

FlatFigures ghost_figures(const Config& c, const JobOptions& job, const WorldFile& world) {
  refuse_algorithm(c, world.gradient, "a simulated ghost");
  const FlatModel model = flat_model(c, world.gradient);
  const optim::Schedule schedule = schedule_of(c);
  FlatSums sums;
  train_flat({c, world, model, schedule, sums}, job, true);
  const double images = double(c.steps * global_batch_of(c, c.workers));
  FlatFigures f{.images_per_second = images / std::max(sums.longest_training, 1e-9),
                .waiting = sums.most_waiting,
                .bytes_per_step = sums.all.bytes / double(sums.workers) / double(c.steps)};
  if (sums.all.in_flight > 0) f.hidden = 1 - sums.all.waited / sums.all.in_flight;
  return f;
}

}  // namespace skein::apps
