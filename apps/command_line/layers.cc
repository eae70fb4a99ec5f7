// A resumed run refuses some changes, and a running job almost all.
#include "apps/command_line/layers.h"

#include <set>

#include "apps/command_line/resumed_run.h"
#include "apps/config/algorithm_values.h"
#include "apps/config/recipes.h"

namespace skein::apps {
namespace {

// Flags that may differ between the workers of a job: on a newcomer's host the data may have another path.
bool is_own(const std::string& flag) {
  static const std::set<std::string> own = {
      "join",         "workers",  "hosts",     "elastic",    "eval-only", "weights",
      "output",       "progress", "data",      "device",     "threads",   "data-threads",
      "memory-limit", "autotune", "interface", "port-range", "trace",     "export-onnx",
      "requeue",      "restarts", "deadline",  "recompute",  "predicted"};
  return own.count(flag) > 0;
}

// A newcomer starts from the configuration of the job that it enters.
void start_from_job(Command& command, const GivenFlags& given, const Flags& table, const AskJob& ask) {
  Config said;
  for (const char* flag : {"join", "deadline"})
    if (given.has(flag))
      assign(said, *find_flag(table, flag), given.text_of(flag), {Source::kCommandLine, text("--", flag)});
  if (said.join.empty()) return;
  std::vector<std::string> skip;
  for (const Flag& f : table)
    if (is_own(f.name) && f.name != "data") skip.push_back(f.name);
  command.job = said.join;
  parse_toml(command.config, ask(said.join, said.deadline), "the job at " + said.join, Source::kResumed,
             table, skip);
  recognize_defaults(command.config);
}

void refuse_what_contradicts(const Config& job, const Config& c, const std::string& place,
                             const Flags& table) {
  for (const Flag& f : table)
    if (c.origin(f.name).source > Source::kResumed && !is_own(f.name) && value_of(c, f) != value_of(job, f))
      throw BadOption(text(c.origin(f.name).place, ' ', value_of(c, f), ": the job at ", place, " has ",
                           f.name, ' ', value_of(job, f),
                           ", and a newcomer takes over what it has; leave it out"));
}

bool is_about_peers(const std::string& flag) {
  return flag == "topology" || flag == "peers" || flag == "base" || flag == "hierarchy" || flag == "alpha" ||
         flag == "groups";
}

// What the command line gives.
void assign_given(Command& command, const GivenFlags& given, Count workers_before, const Flags& table) {
  Config& c = command.config;
  for (const Flag& f : table) {
    if (!given.has(f.name)) continue;
    // Flags about peers may change if the number of workers does.
    if (!command.checkpoint.empty() && c.workers != workers_before && is_about_peers(f.name))
      c.origins.erase(f.name);
    if (!command.job.empty()) c.origins.erase(f.name);  // refuse_what_contradicts() has the words for it
    assign(c, f, given.text_of(f.name), {Source::kCommandLine, "--" + f.name});
  }
}

}  // namespace

Config read_layers(Command& command, const GivenFlags& given, const Flags& table, const AskJob& ask) {
  Config& c = command.config;
  if (given.has("resume"))
    start_from_run(command, given, table);
  else if (ask && command.action == Command::kTrain)
    start_from_job(command, given, table, ask);
  const Config before = c;
  // A resumed run refuses to change. The command line overrides files, so it decides what the change is.
  std::vector<std::string> decided;
  for (const Flag& f : table)
    if (given.has(f.name) && !command.checkpoint.empty()) decided.push_back(f.name);
  if (given.has("recipe")) read_recipe(c, given.text_of("recipe"), table, decided);
  if (given.has("config")) read_toml(c, given.text_of("config"), Source::kFile, table, decided);
  assign_given(command, given, before.workers, table);
  if (!command.job.empty()) refuse_what_contradicts(before, c, command.job, table);
  return before;
}

}  // namespace skein::apps
