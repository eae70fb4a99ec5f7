// train_imagenet: trains image classifiers.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "apps/base/environment.h"
#include "apps/base/printable.h"
#include "apps/command_line/command_line.h"
#include "apps/config/algorithm_values.h"
#include "apps/config/list.h"
#include "apps/doctor/doctor.h"
#include "apps/epoch.h"
#include "apps/evaluate_only.h"
#include "apps/flat/flat_flags.h"
#include "apps/flat/flat_run.h"
#include "apps/launch/elastic/role.h"
#include "apps/launch/epochs.h"
#include "apps/launch/interrupt.h"
#include "apps/launch/launch.h"
#include "apps/launch/requeue.h"
#include "apps/launch/simulated.h"
#include "apps/model/export_onnx.h"
#include "apps/model/predict.h"
#include "apps/model/saved_model.h"
#include "apps/plan/plan.h"
#include "apps/report/compare.h"
#include "apps/setup/setup.h"
#include "engine/device/processor.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

int compare_runs(const Command& command) {
  const std::string& file = command.config.output;
  if (is_directory(file))
    throw BadOption(fmt::format(
        "--output {}: is a directory; with --compare it names the page, as {}/compare.html", file, file));
  const Comparison c = compare(find_runs(command.compare));
  write_file(file, c.page);
  fmt::print("{}  {}  curves, for a browser\n", printable(c.table), file);
  for (const std::string& line : c.warnings) fmt::print("warning: {}\n", printable(line));
  return 0;
}

// Two libraries read the environment before main, so the program executes itself again.
// An OpenMP thread that waits for its team spins; on a machine with anything else to do, the loader's threads
// included, spinning takes the core from the thread it waits for (ten times slower, measured on busy cores).
// But it spins for as long as it takes to fall asleep and be woken, about 0.06 ms: two threads then train
// resnet20 a tenth faster, and lose 3 % where two others share their cores (bench/RESULTS.md).
// An event of a simulated world finds its worker's memory in no cache; huge pages save a fifth of the time.
void set_up_libraries(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  setenv("GOMP_SPINCOUNT", "2000", 1);
  for (char** word = argv; *word; ++word)
    if (std::string_view(*word).starts_with("--simulate"))
      setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1:glibc.malloc.mxfast=0", 0);
  execv("/proc/self/exe", argv);  // if exec fails, training is only slower
}

bool is_flat(const WorldFile& world) { return world.gradient.kind != GradientPlan::Kind::kReal; }

// The world that --simulate describes, and in it the run that these flags ask for.
WorldFile settle_world(Command& command) {
  Config& c = command.config;
  WorldFile world = read_world(c.simulate);
  refuse_in_world(c, world);
  if (is_flat(world)) {
    refuse_flat(c, world.gradient, !command.run.empty() && !command.resume_if_there);
    settle_flat(c);
  }
  c.workers = world.site.workers();
  settle_algorithm(c, int(c.workers));
  return world;
}

int train(Command& command, char** argv) {
  Config& c = command.config;
  take_model_of_weights(c);
  const JobOptions job = job_options(c);
  const auto once = [&](const Member& me) {  // workers that are threads share nothing
    Kept own;
    return work(command, me, own);
  };
  if (!c.simulate.empty()) {
    const WorldFile world = settle_world(command);
    return is_flat(world) ? run_flat(c, job, world) : run_simulated(job, world, once);
  }
  settle_algorithm(c, planned_workers(job));  // must precede the start of workers
  Kept kept;
  // The others train while a newcomer opens its images, but wait for a member. A server has none.
  if (!job.join.empty() && variable(kServesVariable) != "1") kept.legacy.data = open_images(c);
  return run_job(job, argv,
                 [&](const Member& me) { return me.council ? work(command, me, kept) : once(me); });
}

int print_configuration(Command& command) {
  Config& c = command.config;
  const JobOptions job = job_options(c);
  if (c.simulate.empty())
    settle_algorithm(c, planned_workers(job));
  else
    settle_world(command);
  fmt::print("{}", to_toml(c));
  return 0;
}

int act(Command& command, char** argv) {
  Config& c = command.config;
  switch (command.action) {
    case Command::kHelp:
      fmt::print("{}", command.help);
      return 0;
    case Command::kVersion:
      fmt::print("train_imagenet {}\n", SKEIN_VERSION);
      return 0;
    case Command::kList:
      fmt::print("{}", list_tables(command.list));
      return 0;
    case Command::kPrint:
      take_model_of_weights(c);
      return print_configuration(command);
    case Command::kPredict:
      return predict(c, command.prediction) == 0 ? 0 : kExitRuntime;
    case Command::kDoctor:
      take_model_of_weights(c);
      return doctor(c, argv);
    case Command::kPlan:
      take_model_of_weights(c);
      return plan(command, argv);
    case Command::kCompare:
      return compare_runs(command);
    case Command::kTrain:
      break;
  }
  if (!c.export_onnx.empty() && !c.weights.empty() && c.data.empty()) {
    export_onnx(c, c.weights);
    fmt::print("  {}  the model of {} as ONNX\n", c.export_onnx, c.weights);
    return 0;
  }
  if (c.eval_only) {
    catch_interrupts();
    return evaluate_only(c, command.json) ? 0 : kExitInterrupted;
  }
  return train(command, argv);
}

int run(int argc, char** argv) {
  chosen_isa();  // A wrong SKEIN_CPU is said here, before anything starts.
  Command command = parse_command_line(argc, argv, flags(), ask_job);
  try {
    return act(command, argv);
  } catch (const BadOption& e) { throw BadOption(with_place(command.config, e.what())); }
}

}  // namespace
}  // namespace skein::apps

int main(int argc, char** argv) {
  using namespace skein::apps;
  set_up_libraries(argv);
  catch_requeue_signal();
  return status_of("train_imagenet", [&] { return run(argc, argv); });
}
