// Looks for checkpoints; compares configurations flag by flag.
#include "apps/command_line/resumed_run.h"

#include <filesystem>

#include "apps/base/printable.h"
#include "apps/checkpoint/checkpoint.h"
#include "apps/checkpoint/reshare.h"
#include "apps/config/algorithm_values.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

// The directory that --resume means: its own value, or --output, or the newest run below runs/
// that has a checkpoint.
std::string directory_to_resume(const std::string& said, const std::string& output) {
  if (!said.empty()) return said;
  if (!output.empty()) return output;
  std::string newest;
  fs::file_time_type when{};
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("runs", none)) {
    if (list_checkpoints(entry.path()).empty()) continue;
    const auto time = fs::last_write_time(entry.path() / "checkpoints", none);
    if (newest.empty() || time > when) newest = entry.path(), when = time;
  }
  if (newest.empty())
    throw BadOption("--resume: no run below runs/ has a checkpoint; say which with --resume DIR");
  return newest;
}

// If the length was given in epochs and is now given in steps, or the reverse, that is one change.
std::vector<std::string> changes_between(const Config& before, const Config& now, const Flags& table) {
  const auto length = [](const Config& c) {
    const int64_t n = c.steps > 0 ? c.steps : c.epochs;
    return counted(n, c.steps > 0 ? "step" : "epoch");
  };
  const bool other_unit = (before.steps > 0) != (now.steps > 0);
  std::vector<std::string> changes;
  if (other_unit) changes.push_back(text("length ", length(before), " -> ", length(now)));
  for (const Flag& f : table) {
    if (f.name == "progress" || (other_unit && (f.name == "epochs" || f.name == "steps"))) continue;
    if (value_of(before, f) != value_of(now, f))
      changes.push_back(text(f.name, ' ', value_of(before, f), " -> ", value_of(now, f)));
  }
  return changes;
}

}  // namespace

void start_from_run(Command& command, const GivenFlags& given, const Flags& table) {
  const std::string output = given.text_of("output"), said = given.text_of("resume");
  command.resume_if_there = said == "auto";
  if (command.resume_if_there && output.empty())
    throw BadOption("--resume auto needs --output DIR: the run to continue or to begin");
  if (command.resume_if_there && list_checkpoints(output).empty()) {
    command.run = output;
    return;
  }
  const std::string place = directory_to_resume(command.resume_if_there ? output : said, output);
  // A run that was stopped before its first checkpoint starts from the beginning.
  std::error_code none;
  const bool unsaved = fs::exists(fs::path(place) / "config.toml", none) && list_checkpoints(place).empty();
  if (!unsaved) command.checkpoint = find_checkpoint(place);
  const fs::path run = unsaved ? fs::path(place) : fs::path(command.checkpoint).parent_path().parent_path();
  command.run = run;
  command.newest =
      (fs::path(place) / "").lexically_normal() != (fs::path(command.checkpoint) / "").lexically_normal();
  if (fs::exists(run / "config.toml"))
    read_toml(command.config, run / "config.toml", Source::kResumed, table,
              {"output", "eval-only", "export-onnx", "progress", "join", "predicted",
               unsaved ? "output" : "weights"});
  recognize_defaults(command.config);
  assign(command.config, *find_flag(table, "output"), run, {Source::kResumed, "--resume"});
}

void continue_run(Command& command, const Config& before, const Flags& table) {
  Config& c = command.config;
  if (c.data.empty())
    throw BadFile(
        text((fs::path(command.run) / "config.toml").string(),
             ": is missing, and with it the flags of this run; restore it from a copy, or give all of "
             "them again, beginning with --data"));
  if (c.workers != before.workers)
    keep_global_batch(c, read_sound_manifest(command.checkpoint), int(c.workers));
  if (c.eval_only || !c.weights.empty())
    throw BadOption(c.origin(c.eval_only ? "eval-only" : "weights").place +
                    " does not go with --resume: a resumed run takes its weights from the checkpoint");
  command.changes = changes_between(before, c, table);
}

}  // namespace skein::apps
