// The files are the main thread's, before the world begins and after it has ended.
#include "apps/flat/flat_run.h"

#include <algorithm>

#include "apps/checkpoint/run_directory.h"
#include "apps/config/algorithm_values.h"
#include "apps/flat/flat_flags.h"
#include "apps/flat/flat_worker.h"
#include "apps/launch/crew/losses.h"
#include "apps/launch/interrupt.h"

namespace skein::apps {
namespace {

// There are no epochs: all of the run is one.
optim::Schedule schedule_of(const Config& c) {
  const double rate = c.reference_batch > 0
                          ? optim::scale_rate(c.lr, global_batch_of(c, c.workers), c.reference_batch,
                                              optim::rule_row(c.optimizer).growth)
                          : c.lr;
  return optim::parse_schedule(c.lr_schedule, rate, c.steps, 1, std::min(c.warmup_epochs, 0.2));
}

void take_directory(RunDirectory& home, const Config& c, const GradientPlan& g) {
  if (c.output.empty())
    return home.make(g.kind == GradientPlan::Kind::kGhost ? c.model : "vector", gradient_word(g));
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

}  // namespace

int run_flat(const Config& c, const JobOptions& job, const WorldFile& world) {
  const FlatModel model = flat_model(c, world.gradient);
  const optim::Schedule schedule = schedule_of(c);
  RunDirectory home(0);
  take_directory(home, c, world.gradient);
  outlive_readers();
  catch_interrupts();
  Progress progress(stdout, showing(c.progress, stdout));
  FlatRecord record(c, model, schedule, home.path(), progress);
  progress.say(text(model.words, "; ", c.workers, c.workers == 1 ? " worker" : " workers", " by ",
                    c.algorithm, ", ", c.steps, c.steps == 1 ? " step" : " steps", "; ", home.path()));
  int status = 1;
  try {
    status = train_flat({c, world, model, schedule, record}, job, false);
  } catch (const Interruption&) {  // the record says how far the run came
    status = kExitInterrupted;
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
  refuse_flat_algorithm(c, world.gradient, "a simulated ghost");
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
