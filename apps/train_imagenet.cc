// train_imagenet: trains image classifiers.
#include <errno.h>  // program_invocation_name
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "apps/base/printable.h"
#include "apps/base/together.h"
#include "apps/beginning.h"
#include "apps/checkpoint/reshare.h"
#include "apps/command_line/command_line.h"
#include "apps/config/algorithm_values.h"
#include "apps/config/list.h"
#include "apps/doctor/doctor.h"
#include "apps/evaluate_only.h"
#include "apps/launch/device_choice.h"
#include "apps/launch/epochs.h"
#include "apps/launch/interrupt.h"
#include "apps/launch/placement.h"
#include "apps/launch/requeue.h"
#include "apps/launch/simulated.h"
#include "apps/launch/superior.h"
#include "apps/model/class_words.h"
#include "apps/model/export_onnx.h"
#include "apps/model/predict.h"
#include "apps/report/compare.h"
#include "apps/report/report.h"
#include "apps/train/trainer.h"
#include "comm/communicator/words.h"
#include "comm/membership/council.h"
#include "engine/backend.h"
#include "engine/device/processor.h"
#include "engine/words/file.h"
#include "optim/schedule.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

int compare_runs(const Command& command) {
  const std::string& file = command.config.output;
  if (fs::is_directory(file))
    throw BadOption(fmt::format(
        "--output {}: is a directory; with --compare it names the page, as {}/compare.html", file, file));
  const Comparison c = compare(find_runs(command.compare));
  write_file(file, c.page);
  fmt::print("{}  {}  curves, for a browser\n", printable(c.table), file);
  for (const std::string& line : c.warnings) fmt::print("warning: {}\n", printable(line));
  return 0;
}

void say_beginning(const Config& c, const Setup& s, const std::string& directory, Progress& progress) {
  progress.say(fmt::format("{} on {}: {} training and {} test images of {} classes, {}x{}x{}", c.model,
                           c.data, s.data.train->size(), s.data.test->size(), s.data.train->classes().size(),
                           s.image.height, s.image.width, s.image.channels));
  for (const std::string& line : describe_classes(s.data)) progress.say(line);
  const std::string batch = describe_batch(s.global_batch, s.place.world);
  progress.say(fmt::format("{} step{}, {} an epoch, batch {}, {} on {}, {} thread{}; {}", s.total_steps,
                           s.total_steps == 1 ? "" : "s", s.steps_per_epoch, batch, c.precision,
                           text(s.device), s.threads, s.threads == 1 ? "" : "s", directory));
  if (c.reference_batch > 0)
    progress.say(fmt::format("learning rate {:.4g} = {:.4g} x {}/{}, {}",
                             optim::scale_rate(c.lr, s.global_batch, c.reference_batch), c.lr, s.global_batch,
                             c.reference_batch, c.lr_schedule));
  if (!s.device.is_cuda()) progress.say("instruction sets: " + cpu::describe());
  if (!s.device_note.empty()) progress.say(s.device_note);
  for (const std::string& note : s.data.notes) progress.say(note);
  if (!s.data_cores.empty())
    progress.say(fmt::format("worker 0 computes on cores {} and decodes on cores {}",
                             list_cores(s.compute_cores), list_cores(s.data_cores)));
  std::string sizes;
  for (const auto& shard : s.portions->shards())
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(shard.size());
  if (!sizes.empty()) progress.say(fmt::format("split {}: workers have {} images", c.split, sizes));
  for (const std::string& line : never_reached(c, s.place.world, s.total_steps, s.steps_per_epoch))
    progress.say("warning: " + line);
}

// Who goes on, and from where.
void say_change(const Member& me, const Legacy& legacy, Progress& progress) {
  if (legacy.changes.empty()) return;
  const ChangeEvent& e = legacy.changes.back();
  std::string what;
  for (const std::string& one : e.lost) what += (what.empty() ? "" : "; ") + one;
  if (e.joined) what += fmt::format("{}{} new", what.empty() ? "" : "; ", e.joined);
  progress.say(fmt::format("{}: {} worker{} from step {} on", what, me.world,
                           me.world == 1 ? " goes on" : "s go on", e.step));
}

std::string words_at_end(const Outcome& out, const Config& c, const std::string& directory) {
  const std::string quoted = directory.find(' ') == std::string::npos ? directory : "'" + directory + "'";
  if (out.interrupted) {
    return fmt::format("interrupted after step {}; continue with: {} --resume {}\n", out.step,
                       program_invocation_name, quoted);
  }
  std::string s;
  if (out.score) s += fmt::format("{}\n", describe(*out.score));
  if (out.ema) s += fmt::format("moving average: {}\n", describe(*out.ema));
  s += fmt::format("{:.0f} images/s, {} of training\n", out.images_per_second,
                   format_duration(out.training_seconds));
  if (out.bytes_per_step)
    s += fmt::format("{} sent by a worker in a step{}\n", format_bytes(*out.bytes_per_step),
                     out.hidden_share ? fmt::format(", {:.0f} % of the transfer time hidden behind computing",
                                                    100 * *out.hidden_share)
                                      : "");
  s += fmt::format("  {}/report.html        curves, for a browser\n", directory);
  s += fmt::format("  {}/summary.json       figures\n", directory);
  s += fmt::format("  {}/model.safetensors  the model\n", directory);
  if (!c.export_onnx.empty()) s += fmt::format("  {}  the same as ONNX\n", c.export_onnx);
  if (out.ema) s += fmt::format("  {}/model_ema.safetensors  the moving average of its weights\n", directory);
  if (out.best && (out.best->step != out.step || out.best->ema))
    s += fmt::format("  {}/{}  the best model: top-1 {:.2f} % after epoch {:.4g}{}\n", directory,
                     BestModel::kFile, out.best->top1, out.best->epoch,
                     out.best->ema ? ", of the moving average" : "");
  if (c.tensorboard) s += fmt::format("  tensorboard --logdir {}\n", quoted);
  const std::string more =
      c.steps > 0 ? fmt::format("--steps {}", 2 * c.steps) : fmt::format("--epochs {}", 2 * c.epochs);
  s += fmt::format("train longer with: {} --resume {} {}\n", program_invocation_name, quoted, more);
  return s;
}

// Runs a process that only serves, until no worker is left. It catches interrupts because the
// workers act on them.
int serve(const Config& c, const Member& server) {
  catch_interrupts();
  const auto strategy = optim::make_strategy(c.algorithm, options_of(c), server.world);
  optim::strategy_row(c.algorithm).serve(*strategy, server.hub);
  return 0;
}

// Called after an interruption, when the checkpoint is written. Rank 0 asks SLURM to requeue the job,
// whichever worker SIGUSR1 has reached. The others wait for it, because a step whose tasks end may end the
// job. A job that made no progress is not requeued, because it would come back forever.
void end_interrupted(const Member& me, const Config& c, int64_t steps_taken) try {
  const auto of_all = comm::gather_numbers(me.comm, {double(c.requeue && asked_to_come_again())});
  const bool wanted = std::any_of(of_all.begin(), of_all.end(), [](const auto& one) { return one[0] != 0; });
  if (wanted && me.rank == 0)
    say(stdout, (steps_taken > 0 ? requeue_job()
                                 : "--requeue: no step was taken since the start, so the job is not put in "
                                   "the queue again; it needs more time") +
                    '\n');
  me.comm.barrier();
} catch (const comm::PeerLost&) {  // the lost peer was in an asynchronous run that has continued without it
}

// What a process keeps when the membership changes around it.
struct Kept {
  std::optional<RunDirectory> home;
  Legacy legacy;
};

bool is_later_epoch(const Member& me) { return me.council && me.council->now().epoch > 1; }

// Newcomers learn from rank 0 what the others know. Whoever has become rank 0 answers for the run's directory.
void begin_epoch(const Member& me, Kept& kept) {
  const bool newcomer = kept.legacy.directory.empty();
  if (newcomer) kept.legacy.left_at = clock_seconds();
  kept.legacy.share(me.comm);
  if (!kept.legacy.changes.empty()) {  // members of an epoch that did not come about may have been lost since
    kept.legacy.changes.back().number = int(me.council->now().epoch);
    kept.legacy.changes.back().workers = me.world;
  }
  if (newcomer) kept.home->join(kept.legacy.directory);
  if (me.rank == 0) kept.home->take_over();
}

// Trains as one worker. Only rank 0 prints.
int train_in_epoch(const Command& command, const Member& me, Kept& kept) {
  Config c = command.config;
  const bool later = is_later_epoch(me);
  if (!kept.home) kept.home.emplace(me.rank);
  const std::string checkpoint = later ? "" : checkpoint_to_start_from(command, me.comm, *kept.home);
  Survivors survivors(me.comm, me.hub, optim::strategy_row(c.algorithm).center && !me.council);
  std::string directory;
  if (later) {
    begin_epoch(me, kept);
    directory = kept.legacy.directory;
  } else {
    survivors.wholly([&] { directory = directory_to_train_in(command, survivors.comm(), *kept.home); });
  }
  Setup setup;
  std::string adapted;
  const auto open = [&] {
    if (setup.model) return;  // an earlier attempt has set it up
    if (!checkpoint.empty()) keep_global_batch(c, read_sound_manifest(checkpoint), me.world);
    if (later) share_batch(c, kept.legacy.global_batch, me.world), adapted = adapt_algorithm(c, me.world);
    c.workers = me.world;
    setup = open_setup(c, me, kept.legacy.data);
  };
  survivors.wholly([&] { together(survivors.comm(), open); });
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
  Progress progress(me.rank == 0 ? stdout : nowhere.get(), showing(c.progress, stdout));
  if (me.simulated) progress.pace_by([&world = me.simulated->world] { return world.real_seconds(); });
  later ? say_change(me, kept.legacy, progress) : say_beginning(c, setup, directory, progress);
  if (!adapted.empty()) progress.say(adapted);
  c.output = directory;
  if (me.announce) me.announce(directory);
  if (!setup.alone) {
    progress.say(fmt::format("{} worker{}{} by {}; {}", me.world, me.world == 1 ? "" : "s",
                             me.has_server() ? " and a server" : "", c.algorithm, one_line(me.ways)));
    std::string sums;
    survivors.wholly([&] {
      sums = join_gpus(survivors.comm(), c, setup.device);
      setup.messages = join_messages(survivors.comm(), c, setup.device, nn::count_params(*setup.model));
    });
    setup.place.ways = with_sums(setup.place.ways, sums);
    for (const std::string& way : {sums, setup.messages})
      if (!way.empty()) progress.say(way);
  }
  std::unique_ptr<Trainer> made;
  survivors.wholly([&] {
    together(survivors.comm(), [&] {
      if (!made) made = std::make_unique<Trainer>(c, std::move(setup), directory, progress, survivors);
    });
  });
  Trainer& trainer = *made;
  int64_t begun_at = 0;
  if (later) {
    trainer.inherit(kept.legacy);
  } else if (!checkpoint.empty()) {
    trainer.resume(checkpoint);
    begun_at = trainer.step_number();
    progress.say("going on from " + checkpoint);
    for (const std::string& change : command.changes) progress.say("changed since: " + change);
    for (const std::string& line : trainer.changes_of_data()) progress.say(line);
    if (command.config.workers != me.world)
      progress.say(fmt::format("changed since: workers {} -> {}", command.config.workers, me.world));
  }
  catch_interrupts(me.council ? Termination::kLeaves : Termination::kStopsAll);
  const bool too_few = me.council && me.world < c.min_workers;
  if (too_few)
    progress.say(fmt::format("{} of at least {} workers are left; the run stops", me.world, c.min_workers));
  const Outcome out = trainer.run([too_few] { return too_few || interrupted(); }, told_to_leave);
  progress.finish();
  if (out.legacy) {
    kept.legacy = std::move(*out.legacy);
    return kNextEpoch;
  }
  if (out.bereaved) {
    if (!out.why.empty()) say(stderr, fmt::format("train_imagenet: {}\n", out.why));
    return kExitRuntime;
  }
  if (me.rank == 0) {
    if (!out.interrupted && !c.export_onnx.empty()) export_onnx(c, directory + "/model.safetensors");
    say(stdout, words_at_end(out, c, directory));
  }
  if (out.interrupted) end_interrupted(me, c, out.step - begun_at);
  return out.interrupted ? kExitInterrupted : 0;
}

// A change of membership that interrupts the beginning of a later epoch leaves what this worker has taken along.
int train(const Command& command, const Member& me, Kept& kept) try {
  outlive_readers();
  return me.serves() ? serve(command.config, me) : train_in_epoch(command, me, kept);
} catch (const comm::EpochEnds&) {
  if (!is_later_epoch(me)) throw;
  return kNextEpoch;
} catch (const comm::PeerLost&) {
  if (!is_later_epoch(me)) throw;
  return kNextEpoch;
} catch (const comm::GivenUp&) {
  if (!me.council || !told_to_leave()) throw;
  report_leaving();
  say(stdout, fmt::format("worker {} has left; the others go on\n", me.rank));
  return 0;
}

// An OpenMP thread that waits for its team spins; on a machine with anything else to do, the loader's threads
// included, spinning takes the core from the thread it waits for (ten times slower, measured on busy cores).
// libgomp reads the environment before main, so the program executes itself again.
void nap_while_idle(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);  // if exec fails, training is only slower
}

// Trains in the world that --simulate describes.
int simulate(Command& command, const JobOptions& job) {
  Config& c = command.config;
  const WorldFile world = naming_place(c, "simulate", [&] { return read_world(c.simulate); });
  refuse_in_world(c, world);
  c.workers = world.site.workers();
  settle_algorithm(c, int(c.workers));
  return run_simulated(job, world, [&](const Member& me) {
    Kept once;
    return train(command, me, once);
  });
}

int act(Command& command, char** argv) {
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
      settle_algorithm(command.config, planned_workers(job_options(command.config)));
      fmt::print("{}", to_toml(command.config));
      return 0;
    case Command::kPredict:
      return predict(command.config, command.prediction) == 0 ? 0 : kExitRuntime;
    case Command::kDoctor:
      return doctor(command.config, argv);
    case Command::kCompare:
      return compare_runs(command);
    case Command::kTrain:
      break;
  }
  if (const Config& c = command.config; !c.export_onnx.empty() && !c.weights.empty() && c.data.empty()) {
    export_onnx(c, c.weights);
    fmt::print("  {}  the model of {} as ONNX\n", c.export_onnx, c.weights);
    return 0;
  }
  if (command.config.eval_only) {
    catch_interrupts();
    return evaluate_only(command.config, command.json) ? 0 : kExitInterrupted;
  }
  take_model_of_weights(command.config);
  const JobOptions job = job_options(command.config);
  if (!command.config.simulate.empty()) return simulate(command, job);
  settle_algorithm(command.config, planned_workers(job));  // must precede the start of workers
  Kept kept;
  return run_job(job, argv, [&](const Member& me) {
    if (me.council) return train(command, me, kept);
    Kept once;  // workers that are threads share nothing
    return train(command, me, once);
  });
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
  nap_while_idle(argv);
  catch_requeue_signal();
  std::signal(SIGXFSZ,
              // Exceeding a file-size limit then looks like a full disk: an error that names the file.
              SIG_IGN);
  return status_of("train_imagenet", [&] { return run(argc, argv); });
}
