// train_imagenet: trains image classifiers.
#include <errno.h>  // program_invocation_name
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "apps/command_line.h"
#include "apps/export_onnx.h"
#include "apps/interrupt.h"
#include "apps/list.h"
#include "apps/saved_model.h"
#include "apps/together.h"
#include "apps/trainer.h"

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
  return 0;
}

void say_beginning(const Config& c, const Setup& s, const std::string& directory, Progress& progress) {
  progress.say(fmt::format("{} on {}: {} training and {} test images of {} classes, {}x{}x{}", c.model,
                           c.data, s.data.train->size(), s.data.test->size(), s.data.train->classes().size(),
                           s.image.height, s.image.width, s.image.channels));
  progress.say(fmt::format("{} steps, {} an epoch, batch {}, {} on {}, {} threads; {}", s.total_steps,
                           s.steps_per_epoch, s.global_batch, c.precision, text(s.device), s.threads,
                           directory));
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
  fmt::print("{:.0f} images/s, {} of training\n", out.images_per_second,
             format_duration(out.training_seconds));
  fmt::print("  {}/report.html        curves, for a browser\n", directory);
  fmt::print("  {}/summary.json       figures\n", directory);
  fmt::print("  {}/model.safetensors  the model\n", directory);
  if (!c.export_onnx.empty()) fmt::print("  {}  the same as ONNX\n", c.export_onnx);
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

// One worker's part. Only rank 0 speaks.
int train(const Command& command, const Place& place) {
  Config c = command.config;
  if (place.serves) return serve(c, place);
  c.workers = place.world;
  Setup setup;
  together(place.comm, [&] { setup = open_setup(c, place); });
  const std::string directory = from_rank_zero(place.comm, c.output.empty() ? new_directory(c) : c.output);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
  Progress progress(place.rank == 0 ? stdout : nowhere.get());
  say_beginning(c, setup, directory, progress);
  c.output = directory;
  if (place.comm)
    progress.say(fmt::format("{} worker{}{} by {}; {}", place.world, place.world == 1 ? "" : "s",
                             place.hub ? " and a server" : "", c.algorithm, one_line(place.ways)));
  std::unique_ptr<Trainer> made;
  together(place.comm, [&] { made = std::make_unique<Trainer>(c, std::move(setup), directory, progress); });
  Trainer& trainer = *made;
  if (!command.checkpoint.empty()) {
    trainer.resume(command.checkpoint);
    progress.say("going on from " + command.checkpoint);
    for (const std::string& change : command.changes) progress.say("changed since: " + change);
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
    case Command::kTrain:
      break;
  }
  if (const Config& c = command.config; !c.export_onnx.empty() && !c.weights.empty() && c.data.empty()) {
    export_onnx(c, c.weights);
    return 0;
  }
  if (command.config.eval_only) return evaluate_only(command.config);
  check_algorithm(command.config, int(command.config.workers));  // before any worker starts
  return run_job(job_options(command.config), argv, [&](Place& place) { return train(command, place); });
}

}  // namespace
}  // namespace skein::apps

int main(int argc, char** argv) {
  using namespace skein::apps;
  nap_while_idle(argv);
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
