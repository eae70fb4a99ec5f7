// Reads the command line with CLI11: each flag of the table is an option whose text goes through assign().
#include "apps/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/base/printable.h"
#include "apps/checkpoint/checkpoint.h"
#include "apps/checkpoint/reshare.h"
#include "apps/config/algorithm_values.h"
#include "apps/config/help.h"
#include "apps/config/known_words.h"
#include "apps/config/recipes.h"
#include "data/source.h"
#include "engine/words/find_row.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

struct Parser {
  CLI::App app{"Trains image classifiers, alone or as one of many workers.", "train_imagenet"};
  std::vector<std::pair<const Flag*, CLI::Option*>> of_table;
  CLI::Option *config, *recipe, *resume;
  CLI::Option *help, *compare, *list, *print, *version, *doctor;  // each selects an action
  CLI::Option *predict, *top, *json, *logits;

  explicit Parser(const Flags& table) {
    app.allow_extras();   // so that we write the message about an unknown flag
    app.set_help_flag();  // --help is ours, too
    help = optional("--help,-h", "[ALGORITHM]",
                    "show this, or the flags that an algorithm reads and their defaults, and exit");
    config = plain("--config", "FILE",
                   "TOML file of flags, one KEY = VALUE per line; the command line takes precedence");
    recipe = plain(
        "--recipe", "NAME",
        "a training that is known to work (--list recipes); --config and the command line take precedence");
    for (const Flag& f : table) of_table.emplace_back(&f, add(f));
    resume = optional("--resume", "[DIR|auto]",
                      "continue the run in DIR, or in --output, or the newest below runs/; auto: the one in "
                      "--output if it has a "
                      "checkpoint, else begin it");
    compare =
        plain("--compare", "DIR...",
              "plot the runs in these directories on the same axes, in --output [compare.html], and exit")
            ->expected(1, -1)
            ->allow_extra_args();
    const char* what = "what the pictures show";
    predict = plain("--predict", "PATH...",
                    "JPEG and PNG files, or directories of them: name their classes by --weights")
                  ->expected(1, -1)
                  ->allow_extra_args()
                  ->group(what);
    top = plain("--top", "N", "classes to name for each picture [5]")->group(what);
    json = app.add_flag("--json")
               ->description("one JSON object per line instead of a table; also for --eval-only")
               ->group(what);
    logits = plain("--logits", "FILE.npy", "write the outputs of the model before the softmax")->group(what);
    list = optional("--list", "[WHAT]", "algorithms, models, topologies, data, recipes, or all of them");
    print = app.add_flag("--print")->description("show the whole effective configuration as TOML, and exit");
    version = app.add_flag("--version")->description("show the version, and exit");
    doctor =
        app.add_flag("--doctor")
            ->description(
                "check whether this machine is ready for a run with these flags, say what to do, and exit");
  }

  CLI::Option* plain(const std::string& name, const char* type, const std::string& help) {
    // Repeated flags are collected, so that we write the message about them.
    return app.add_option(name)->description(help)->type_name(type)->multi_option_policy(
        CLI::MultiOptionPolicy::TakeAll);
  }
  CLI::Option* optional(const std::string& name, const char* type, const std::string& help) {
    return plain(name, type, help)->expected(0, 1);
  }
  CLI::Option* add(const Flag& f) {
    std::string help = f.help;
    if (!f.algorithms.empty()) help += "; of " + joined(f.algorithms);
    const std::string otherwise = value_of(Config(), f);
    if (!otherwise.empty()) help += " [" + otherwise + "]";
    CLI::Option* o = nullptr;
    if (f.kind == Flag::kSwitch)
      o = app.add_flag("--" + f.name + ",!--no-" + f.name)->description(help);
    else
      o = plain("--" + f.name, type_of(f).c_str(), help);
    return o->group(f.group);
  }
};

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* o : app.get_options()) names.push_back(o->get_lnames()[0]);
  return names;
}

std::string text_of(const CLI::Option* o) {
  const std::vector<std::string>& said = o->results();
  for (const std::string& s : said)
    if (s != said.front()) throw BadOption(text(o->get_name(), " is given as ", said.front(), " and as ", s));
  return said.empty() ? "" : said.front();
}

// Refuses a word without a flag, which is most likely a data set, or the directory of the given kind of data.
[[noreturn]] void refuse_word(const Parser& p, const std::string& word) {
  std::string kind;
  for (const auto& [flag, option] : p.of_table)
    if (flag->name == "data") kind = text_of(option);
  const bool directory = fs::is_directory(word);
  const std::string data = directory && !kind.empty() && kind.find(':') == std::string::npos
                               ? kind + ':' + word
                               : data::with_kind(word);
  const bool known = data != word || find_row(data::sources(), word);
  throw BadOption(text("unexpected argument '", word, "'", known ? "; did you mean --data " + data + "?" : "",
                       "; see --help"));
}

void refuse_extras(const Parser& p) {
  const std::vector<std::string> extras = p.app.remaining();
  if (extras.empty()) return;
  const std::string said = extras[0].substr(0, extras[0].find('='));
  const std::string name = said.substr(std::min(said.find_first_not_of('-'), said.size()));
  if (said[0] != '-') refuse_word(p, extras[0]);
  const std::string answer = answer_to_flag(name), meant = nearest(name, option_names(p.app));
  throw BadOption(text("unknown flag ", said,
                       !answer.empty()  ? ": " + answer
                       : !meant.empty() ? "; did you mean --" + meant + "?"
                                        : "",
                       "; see --help"));
}

void run_parser(Parser& p, int argc, const char* const* argv) {
  try {
    p.app.parse(argc, argv);
  } catch (const CLI::ParseError& e) { throw BadOption(text(e.what(), "; see --help")); }
  if (!p.help->count()) refuse_extras(p);
}

// The directory that --resume means: its own value, or --output, or the newest run below runs/
// that has a checkpoint.
std::string directory_to_resume(const std::string& said, const std::string& output) {
  if (!said.empty()) return said;
  if (!output.empty()) return output;
  std::string newest;
  fs::file_time_type when{};
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("runs", none)) {
    if (!entry.is_directory() || list_checkpoints(entry.path()).empty()) continue;
    const auto time = fs::last_write_time(entry.path() / "checkpoints", none);
    if (newest.empty() || time > when) newest = entry.path(), when = time;
  }
  if (newest.empty())
    throw BadOption("--resume: no run below runs/ has a checkpoint; say which with --resume DIR");
  return newest;
}

// Starts from the configuration with which the run was last trained, except for flags that name a
// place or a purpose.
void start_from_run(Command& command, const Parser& p, const Flags& table) {
  std::string output;
  for (const auto& [flag, option] : p.of_table)
    if (flag->name == "output") output = text_of(option);
  const std::string said = text_of(p.resume);
  command.resume_if_there = said == "auto";
  if (command.resume_if_there && output.empty())
    throw BadOption("--resume auto needs --output DIR: the run to continue or to begin");
  if (command.resume_if_there && list_checkpoints(output).empty()) {
    command.run = output;
    return;
  }
  const std::string place = directory_to_resume(command.resume_if_there ? output : said, output);
  // A run that was stopped before its first checkpoint starts from the beginning.
  const bool unsaved = fs::exists(fs::path(place) / "config.toml") && list_checkpoints(place).empty();
  if (!unsaved) command.checkpoint = find_checkpoint(place);
  const fs::path run = unsaved ? fs::path(place) : fs::path(command.checkpoint).parent_path().parent_path();
  command.run = run;
  command.newest =
      (fs::path(place) / "").lexically_normal() != (fs::path(command.checkpoint) / "").lexically_normal();
  if (fs::exists(run / "config.toml"))
    read_toml(command.config, run / "config.toml", Source::kResumed, table,
              {"output", "eval-only", "export-onnx", "progress", "join", unsaved ? "output" : "weights"});
  recognize_defaults(command.config);
  assign(command.config, *find_flag(table, "output"), run, {Source::kResumed, "--resume"});
}

// What each worker has for itself. The path of the data may be another one on its host.
bool is_own(const std::string& flag) {
  static const std::set<std::string> own = {
      "join",      "workers",    "hosts",  "elastic",     "eval-only",    "weights",      "output",
      "progress",  "data",       "device", "threads",     "data-threads", "memory-limit", "autotune",
      "interface", "port-range", "trace",  "export-onnx", "requeue",      "restarts",     "deadline"};
  return own.count(flag) > 0;
}

// A newcomer starts from the configuration of the job that it enters.
void start_from_job(Command& command, const Parser& p, const Flags& table, const AskJob& ask) {
  Config said;
  for (const auto& [flag, option] : p.of_table)
    if (option->count() && (flag->name == "join" || flag->name == "deadline"))
      assign(said, *flag, text_of(option), {Source::kCommandLine, "--" + flag->name});
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

Prediction read_prediction(const Parser& p) {
  Prediction how;
  how.paths = p.predict->results();
  how.json = p.json->count() > 0;
  how.logits = text_of(p.logits);
  const std::string top = text_of(p.top);
  if (!top.empty()) how.top = number_in<int64_t>(top).value_or(0);
  if (how.top < 1) throw BadOption(text("--top: '", top, "' is not a number of classes, 1 or more"));
  return how;
}

// Refuses flags about pictures without --predict, and flags that belong to another purpose.
void check_purpose(const Command& command, const Parser& p) {
  if (!p.predict->count()) {
    for (const CLI::Option* o : {p.top, p.logits})
      if (o->count()) throw BadOption(o->get_name() + " goes with --predict PATH...");
    if (p.json->count() && !command.config.eval_only)
      throw BadOption("--json goes with --predict PATH... or --eval-only");
    return;
  }
  const Config& c = command.config;
  if (p.resume->count() || c.eval_only || !c.join.empty())
    throw BadOption(text(p.resume->count() ? "--resume"
                         : c.eval_only     ? "--eval-only"
                                           : "--join",
                         " does not go with --predict"));
  if (c.weights.empty()) throw BadOption("--predict needs --weights FILE: the model.safetensors of a run");
}

// With --compare only --output may be given.
void read_comparison(Command& command, const Parser& p) {
  command.action = Command::kCompare;
  command.compare = p.compare->results();
  command.config.output = "compare.html";
  for (const auto& [flag, option] : p.of_table) {
    if (!option->count()) continue;
    if (flag->name != "output")
      throw BadOption("--" + flag->name + " does not go with --compare, which trains nothing");
    command.config.output = text_of(option);
  }
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

std::string help_for(const Parser& p) {
  const std::string algorithm = text_of(p.help);
  if (algorithm.empty()) return help_text(p.app);
  Config c;
  for (const auto& [flag, option] : p.of_table)
    if (flag->name == "workers" && option->count())
      assign(c, *flag, text_of(option), {Source::kCommandLine, "--workers"});
  return help_of_algorithm(algorithm, c);
}

bool is_about_peers(const std::string& flag) {
  return flag == "topology" || flag == "peers" || flag == "base" || flag == "hierarchy" || flag == "alpha";
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv, const Flags& table, const AskJob& ask) {
  Parser p(table);
  Command command;
  run_parser(p, argc, argv);
  if (p.help->count()) {
    command.action = Command::kHelp;
    command.help = help_for(p);
    return command;
  }
  if (p.print->count()) command.action = Command::kPrint;
  if (p.doctor->count()) command.action = Command::kDoctor;
  if (p.list->count()) command.action = Command::kList, command.list = text_of(p.list);
  if (p.version->count()) command.action = Command::kVersion;
  if (command.action == Command::kVersion || command.action == Command::kList) return command;

  if (p.compare->count()) {
    read_comparison(command, p);
    return command;
  }

  if (p.resume->count()) start_from_run(command, p, table);
  if (ask && command.action == Command::kTrain && !p.resume->count()) start_from_job(command, p, table, ask);
  const Config before = command.config;
  Config& c = command.config;
  // A resumed run refuses to change. The command line overrides files, so it decides what the change is.
  std::vector<std::string> decided;
  for (const auto& [flag, option] : p.of_table)
    if (option->count() && !command.checkpoint.empty()) decided.push_back(flag->name);
  if (p.recipe->count()) read_recipe(c, text_of(p.recipe), table, decided);
  if (p.config->count()) read_toml(c, text_of(p.config), Source::kFile, table, decided);
  for (auto& [flag, option] : p.of_table) {
    if (!option->count()) continue;
    // Flags about peers may change if the number of workers does.
    if (!command.checkpoint.empty() && c.workers != before.workers && is_about_peers(flag->name))
      c.origins.erase(flag->name);
    if (!command.job.empty()) c.origins.erase(flag->name);  // refuse_what_contradicts() has the words for it
    assign(c, *flag, text_of(option), {Source::kCommandLine, "--" + flag->name});
  }
  if (!command.job.empty()) refuse_what_contradicts(before, c, command.job, table);
  reconcile(c, table);
  check_purpose(command, p);
  if (p.resume->count() && !c.join.empty())
    throw BadOption(c.origin("join").place +
                    " does not go with --resume: the members of the running job have its state");
  command.json = p.json->count() > 0;
  if (p.predict->count() && command.action == Command::kTrain)
    command.action = Command::kPredict, command.prediction = read_prediction(p);
  if (!command.checkpoint.empty()) {
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
  return command;
}

}  // namespace skein::apps
