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

#include "apps/command_line.h"
#include "apps/compare.h"
#include "apps/device_choice.h"
#include "apps/doctor.h"
#include "apps/durable.h"
#include "apps/export_onnx.h"
#include "apps/interrupt.h"
#include "apps/list.h"
#include "apps/placement.h"
#include "apps/requeue.h"
#include "apps/reshare.h"
#include "apps/saved_model.h"
#include "apps/together.h"
#include "apps/trainer.h"
#include "comm/averaging.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

constexpr int kExitRuntime = 1, kExitUsage = 2, kExitInterrupted = 130;

std::string new_directory(const Config& c) {
  const std::string kind = c.data.substr(0, c.data.find(':'));
  const std::string name =
      fmt::format("runs/{}-{}-{:%Y%m%d-%H%M%S}", c.model, kind, fmt::localtime(std::time(nullptr)));
  std::string unused = name;
  for (int n = 2; fs::exists(unused); ++n) unused = fmt::format("{}-{}", name, n);
  return unused;
}

std::string describe(const Score& s) {
  return fmt::format("top-1 {:.2f} %, top-5 {:.2f} %, loss {:.4f} on {} test images", s.top1, s.top5, s.loss,
                     s.images);
}

int evaluate_only(Config c) {
  c.workers = 1;
  const TensorFile file = read_safetensors(c.weights);
  const ModelInfo info = info_of(c.weights, file);
  take_over(c, c.weights, info);
  Setup setup = open_setup(c);
  import_model(c.weights, file, *setup.model, setup.data.train->classes());
  const auto trained = read_preparation(c.weights, info.more);
  if (trained && trained->image.channels == setup.image.channels)
    setup.mean = trained->mean, setup.deviation = trained->deviation;
  nn::flatten(*setup.model, allocator(setup.device));
  const auto score = evaluate(setup, *setup.model, c.batch_size, interrupted);
  if (!score) return kExitInterrupted;
  fmt::print("{}\n", describe(*score));
  if (const std::string odd = setup.odd_files->to_line(); !odd.empty()) fmt::print("{}\n", odd);
  return 0;
}

int compare_runs(const Command& command) {
  const std::string& file = command.config.output;
  if (fs::is_directory(file))
    throw BadOption(fmt::format(
        "--output {}: is a directory; with --compare it names the page, as {}/compare.html", file, file));
  const Comparison c = compare(find_runs(command.compare));
  write_file(file, c.page);
  fmt::print("{}  {}  curves, for a browser\n", c.table, file);
  return 0;
}

void say_beginning(const Config& c, const Setup& s, const std::string& directory, Progress& progress) {
  progress.say(fmt::format("{} on {}: {} training and {} test images of {} classes, {}x{}x{}", c.model,
                           c.data, s.data.train->size(), s.data.test->size(), s.data.train->classes().size(),
                           s.image.height, s.image.width, s.image.channels));
  progress.say(fmt::format("{} steps, {} an epoch, batch {}, {} on {}, {} threads; {}", s.total_steps,
                           s.steps_per_epoch, s.global_batch, c.precision, text(s.device), s.threads,
                           directory));
  if (!s.device_note.empty()) progress.say(s.device_note);
  for (const std::string& note : s.data.notes) progress.say(note);
  if (!s.data_cores.empty())
    progress.say(fmt::format("worker 0 computes on cores {} and decodes on cores {}",
                             list_cores(s.compute_cores), list_cores(s.data_cores)));
  std::string sizes;
  for (const auto& shard : s.portions->shards())
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(shard.size());
  if (!sizes.empty()) progress.say(fmt::format("split {}: workers have {} images", c.split, sizes));
}

void say_end(const Outcome& out, const Config& c, const std::string& directory) {
  const std::string quoted = directory.find(' ') == std::string::npos ? directory : "'" + directory + "'";
  if (out.interrupted) {
    fmt::print("interrupted after step {}; go on with: {} --resume {}\n", out.step, program_invocation_name,
               quoted);
    return;
  }
  if (out.score) fmt::print("{}\n", describe(*out.score));
  if (out.ema) fmt::print("moving average: {}\n", describe(*out.ema));
  fmt::print("{:.0f} images/s, {} of training\n", out.images_per_second,
             format_duration(out.training_seconds));
  if (out.bytes_per_step)
    fmt::print("{} sent by a worker in a step{}\n", format_bytes(*out.bytes_per_step),
               out.hidden_share ? fmt::format(", {:.0f} % of the transfer time hidden behind computing",
                                              100 * *out.hidden_share)
                                : "");
  fmt::print("  {}/report.html        curves, for a browser\n", directory);
  fmt::print("  {}/summary.json       figures\n", directory);
  fmt::print("  {}/model.safetensors  the model\n", directory);
  if (!c.export_onnx.empty()) fmt::print("  {}  the same as ONNX\n", c.export_onnx);
  if (out.ema) fmt::print("  {}/model_ema.safetensors  the moving average of its weights\n", directory);
  if (c.tensorboard) fmt::print("  tensorboard --logdir {}\n", quoted);
  const std::string more =
      c.steps > 0 ? fmt::format("--steps {}", 2 * c.steps) : fmt::format("--epochs {}", 2 * c.epochs);
  fmt::print("train longer with: {} --resume {} {}\n", program_invocation_name, quoted, more);
}

// "rank 1: shared memory, rank 2: ucx tcp/eth0"
std::string one_line(std::string lines) {
  while (!lines.empty() && lines.back() == '\n') lines.pop_back();
  for (size_t at; (at = lines.find('\n')) != std::string::npos;) lines.replace(at, 1, ", ");
  return lines;
}

// The part of a process that only serves, until no worker is left. They are who is interrupted.
int serve(const Config& c, const Place& place) {
  catch_interrupts();
  optim::make_strategy(c.algorithm, options_of(c), place.world)->serve(*place.hub);
  return 0;
}

// After an interruption; the checkpoint is written. Whichever worker SIGUSR1 has reached, rank 0 speaks with
// SLURM. The others wait for it, because a step whose tasks end may end the job. A job that got nowhere would
// come again and again.
void end_interrupted(const Place& place, const Config& c, int64_t steps_taken) try {
  bool wanted = c.requeue && asked_to_come_again();
  if (place.comm) {
    const auto of_all = comm::gather_numbers(*place.comm, {double(wanted)});
    wanted = std::any_of(of_all.begin(), of_all.end(), [](const auto& one) { return one[0] != 0; });
  }
  if (wanted && place.rank == 0)
    fmt::print("{}\n", steps_taken > 0
                           ? requeue_job()
                           : "--requeue: no step was taken since the start, so the job is not put in "
                             "the queue again; it needs more time");
  std::fflush(stdout);
  if (place.comm) place.comm->barrier();
} catch (const comm::PeerLost&) {  // of an asynchronous run that has gone on without it
}

// What a run that was stopped before its first checkpoint left behind does not keep --resume auto from
// beginning it.
void clear_for(const Command& command, const Place& place, const std::string& directory) {
  std::error_code none;
  if (place.rank == 0 && command.resume_if_there) fs::remove(fs::path(directory) / "metrics.jsonl", none);
}

// One worker's part. Only rank 0 speaks.
int train(const Command& command, const Place& place) {
  Config c = command.config;
  // A checkpoint may appear to some and not yet to others.
  const std::string checkpoint =
      command.resume_if_there ? from_rank_zero(place.comm, command.checkpoint) : command.checkpoint;
  if (place.serves) return serve(c, place);
  Setup setup;
  together(place.comm, [&] {
    if (!checkpoint.empty() && c.workers != place.world)  // the environment's number is another
      keep_global_batch(c, read_manifest(checkpoint), place.world);
    c.workers = place.world;
    setup = open_setup(c, place);
  });
  const std::string directory = from_rank_zero(place.comm, c.output.empty() ? new_directory(c) : c.output);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
  Progress progress(place.rank == 0 ? stdout : nowhere.get());
  say_beginning(c, setup, directory, progress);
  c.output = directory;
  if (place.comm)
    progress.say(fmt::format("{} worker{}{} by {}; {}", place.world, place.world == 1 ? "" : "s",
                             place.hub ? " and a server" : "", c.algorithm, one_line(place.ways)));
  if (place.comm) {
    const std::string sums = join_gpus(*place.comm, c, setup.device);
    setup.messages = join_messages(*place.comm, c, setup.device, nn::count_params(*setup.model));
    for (const std::string& way : {sums, setup.messages})
      if (!way.empty()) progress.say(way);
  }
  std::unique_ptr<Trainer> made;
  together(place.comm, [&] { made = std::make_unique<Trainer>(c, std::move(setup), directory, progress); });
  Trainer& trainer = *made;
  int64_t begun_at = 0;
  if (checkpoint.empty()) {
    clear_for(command, place, directory);
  } else {
    trainer.resume(checkpoint);
    begun_at = trainer.step_number();
    progress.say("going on from " + checkpoint);
    for (const std::string& change : command.changes) progress.say("changed since: " + change);
    if (command.config.workers != place.world)
      progress.say(fmt::format("changed since: workers {} -> {}", command.config.workers, place.world));
  }
  catch_interrupts();
  const Outcome out = trainer.run(interrupted);
  progress.finish();
  if (!out.bereaved.empty()) {
    fmt::print(stderr, "train_imagenet: {}\n", out.bereaved);
    return kExitRuntime;
  }
  if (place.rank == 0) {
    if (!out.interrupted && !c.export_onnx.empty()) export_onnx(c, directory + "/model.safetensors");
    say_end(out, c, directory);
  }
  if (out.interrupted) end_interrupted(place, c, out.step - begun_at);
  return out.interrupted ? kExitInterrupted : 0;
}

// An OpenMP thread that waits for its team spins; on a machine with anything else to do, the loader's threads
// included, spinning takes the core from the thread it waits for (ten times slower, measured on busy cores).
// libgomp reads the environment before main, so the program starts itself once more.
void nap_while_idle(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);  // if it cannot, training is as right, only slower
}

int run(int argc, char** argv) {
  const Command command = parse_command_line(argc, argv);
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
      fmt::print("{}", to_toml(command.config));
      return 0;
    case Command::kPredict:
      return predict(command.config, command.prediction) == 0 ? 0 : kExitRuntime;
    case Command::kDoctor:
      return doctor(command.config);
    case Command::kCompare:
      return compare_runs(command);
    case Command::kTrain:
      break;
  }
  if (const Config& c = command.config; !c.export_onnx.empty() && !c.weights.empty() && c.data.empty()) {
    export_onnx(c, c.weights);
    return 0;
  }
  if (command.config.eval_only) return evaluate_only(command.config);
  const JobOptions job = job_options(command.config);
  check_algorithm(command.config, planned_workers(job));  // before any worker starts
  return run_job(job, argv, [&](Place& place) { return train(command, place); });
}

}  // namespace
}  // namespace skein::apps

int main(int argc, char** argv) {
  using namespace skein::apps;
  nap_while_idle(argv);
  catch_requeue_signal();
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file-size limit then reads like a full disk: an error that names the file
  try {
    return run(argc, argv);
  } catch (const skein::BadOption& e) {
    fmt::print(stderr, "train_imagenet: {}\n", e.what());
    return kExitUsage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "train_imagenet: {}\n", e.what());
    return kExitRuntime;
  }
}
