// Reads the command line with CLI11: each flag of the table is an option whose text goes through assign().
#include "apps/command_line.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>

#include "apps/checkpoint.h"
#include "apps/recipes.h"
#include "apps/reshare.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

struct Parser {
  CLI::App app{"Trains image classifiers, alone or as one of many workers.", "train_imagenet"};
  std::vector<std::pair<const Flag*, CLI::Option*>> of_table;
  CLI::Option *config, *recipe, *resume;
  CLI::Option *compare, *list, *print, *version, *doctor;  // each an action of its own
  CLI::Option *predict, *top, *json, *logits;

  explicit Parser(const Flags& table) {
    app.allow_extras();  // so that the message about an unknown flag is ours
    config = plain("--config", "FILE",
                   "TOML file of flags, one KEY = VALUE a line; the command line goes over it");
    recipe =
        plain("--recipe", "NAME",
              "a training that is known to work (--list recipes); --config and the command line go over it");
    for (const Flag& f : table) of_table.emplace_back(&f, add(f));
    resume = optional(
        "--resume", "[DIR|auto]",
        "go on with the run in DIR, or in --output, or with the newest below runs/; auto: with that in "
        "--output if it has a checkpoint, else begin it");
    compare = plain("--compare", "DIR...",
                    "lay the runs in these directories on the same axes, in --output [compare.html], and end")
                  ->expected(1, -1)
                  ->allow_extra_args();
    const char* what = "what the pictures show";
    predict = plain("--predict", "PATH...",
                    "JPEG and PNG files, or directories of them: name their classes by --weights")
                  ->expected(1, -1)
                  ->allow_extra_args()
                  ->group(what);
    top = plain("--top", "N", "classes to name for each picture [5]")->group(what);
    json = app.add_flag("--json")->description("one JSON object a line instead of a table")->group(what);
    logits = plain("--logits", "FILE.npy", "write what the model gives, before the softmax")->group(what);
    list = optional("--list", "[WHAT]", "algorithms, models, topologies, data, recipes, or all of them");
    print = app.add_flag("--print")->description("show the whole effective configuration as TOML, and end");
    version = app.add_flag("--version")->description("show the version, and end");
    doctor =
        app.add_flag("--doctor")
            ->description(
                "look whether this machine is in order for a run with these flags, say what to do, and end");
  }

  CLI::Option* plain(const std::string& name, const char* type, const std::string& help) {
    // Repeats are collected, so that the message about them is ours.
    return app.add_option(name)->description(help)->type_name(type)->multi_option_policy(
        CLI::MultiOptionPolicy::TakeAll);
  }
  CLI::Option* optional(const std::string& name, const char* type, const std::string& help) {
    return plain(name, type, help)->expected(0, 1);
  }
  CLI::Option* add(const Flag& f) {
    std::string help = f.help;
    if (!f.algorithms.empty() && f.algorithms[0] != "any")
      for (const std::string& a : f.algorithms) help += (&a == f.algorithms.data() ? "; of " : ", ") + a;
    const Config defaults;
    const std::string otherwise = value_of(defaults, f);
    if (!otherwise.empty()) help += " [" + otherwise + "]";
    CLI::Option* o = nullptr;
    if (f.kind == Flag::kSwitch)
      o = app.add_flag("--" + f.name + ",!--no-" + f.name)->description(help);
    else
      o = plain("--" + f.name,
                f.kind == Flag::kCount  ? "N"
                : f.kind == Flag::kReal ? "NUMBER"
                                        : "TEXT",
                help);
    if (f.allowed.find('|') != std::string::npos) o->type_name(f.allowed);
    return o->group(f.group);
  }
};

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* o : app.get_options()) names.push_back(o->get_name());
  return names;
}

void refuse_extras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return;
  const std::string name = extras[0].substr(0, extras[0].find('='));
  if (name[0] != '-') throw BadOption(text("'", name, "' belongs to no flag; see --help"));
  throw BadOption(text("unknown flag ", name, did_you_mean(name, option_names(app)), "; see --help"));
}

void run_parser(Parser& p, int argc, const char* const* argv) {
  try {
    p.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) { throw; } catch (const CLI::ParseError& e) {
    throw BadOption(text(e.what(), "; see --help"));
  }
  refuse_extras(p.app);
}

std::string text_of(const CLI::Option* o) {
  const std::vector<std::string>& said = o->results();
  for (const std::string& s : said)
    if (s != said.front()) throw BadOption(text(o->get_name(), " is given as ", said.front(), " and as ", s));
  return said.empty() ? "" : said.front();
}

// What --resume means: its own value, or --output, or the newest run below runs/ that has a checkpoint.
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

// The configuration the run was last trained with. What names another place or purpose is not taken over.
void start_from_run(Command& command, const Parser& p, const Flags& table) {
  std::string output;
  for (const auto& [flag, option] : p.of_table)
    if (flag->name == "output") output = text_of(option);
  const std::string said = text_of(p.resume);
  command.resume_if_there = said == "auto";
  if (command.resume_if_there && output.empty())
    throw BadOption("--resume auto needs --output DIR: the run to go on with, or to begin");
  if (command.resume_if_there && list_checkpoints(output).empty()) return;
  command.checkpoint = find_checkpoint(directory_to_resume(command.resume_if_there ? output : said, output));
  const fs::path run = fs::path(command.checkpoint).parent_path().parent_path();
  if (fs::exists(run / "config.toml"))
    read_toml(command.config, run / "config.toml", Source::kResumed, table,
              {"output", "weights", "eval-only", "export-onnx"});
  assign(command.config, *find_flag(table, "output"), run, {Source::kResumed, "--resume"});
}

Prediction read_prediction(const Parser& p) {
  Prediction how;
  how.paths = p.predict->results();
  how.json = p.json->count() > 0;
  how.logits = text_of(p.logits);
  const std::string top = text_of(p.top);
  const auto [end, error] = std::from_chars(top.data(), top.data() + top.size(), how.top);
  if (!top.empty() && (error != std::errc() || end != top.data() + top.size() || how.top < 1))
    throw BadOption(text("--top: '", top, "' is not a number of classes, 1 or more"));
  return how;
}

// Flags that say what to do with pictures, where there are none, or that belong to another purpose.
void check_purpose(const Command& command, const Parser& p) {
  if (!p.predict->count()) {
    for (const CLI::Option* o : {p.top, p.json, p.logits})
      if (o->count()) throw BadOption(o->get_name() + " goes with --predict PATH...");
    return;
  }
  const Config& c = command.config;
  if (p.resume->count() || c.eval_only)
    throw BadOption(text(p.resume->count() ? "--resume" : "--eval-only", " does not go with --predict"));
  if (c.weights.empty()) throw BadOption("--predict needs --weights FILE: the model.safetensors of a run");
}

// Only where the page goes can be said besides.
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

bool is_about_peers(const std::string& flag) {
  return flag == "topology" || flag == "peers" || flag == "base" || flag == "hierarchy" || flag == "alpha";
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv, const Flags& table) {
  Parser p(table);
  Command command;
  try {
    run_parser(p, argc, argv);
  } catch (const CLI::CallForHelp&) {
    command.action = Command::kHelp;
    command.help = p.app.help();
    return command;
  }
  if (p.version->count()) command.action = Command::kVersion;
  if (p.print->count()) command.action = Command::kPrint;
  if (p.doctor->count()) command.action = Command::kDoctor;
  if (p.list->count()) command.action = Command::kList, command.list = text_of(p.list);
  if (command.action == Command::kVersion || command.action == Command::kList) return command;

  if (p.compare->count()) {
    read_comparison(command, p);
    return command;
  }

  if (p.resume->count()) start_from_run(command, p, table);
  const Config before = command.config;
  Config& c = command.config;
  // A resumed run refuses to change; what the command line says of a flag decides what the change is, not a
  // file.
  std::vector<std::string> decided;
  for (const auto& [flag, option] : p.of_table)
    if (option->count() && !command.checkpoint.empty()) decided.push_back(flag->name);
  if (p.recipe->count()) read_recipe(c, text_of(p.recipe), table, decided);
  if (p.config->count()) read_toml(c, text_of(p.config), Source::kFile, table, decided);
  for (auto& [flag, option] : p.of_table) {
    if (!option->count()) continue;
    // Who speaks with whom is free where other workers than before go on.
    if (!command.checkpoint.empty() && c.workers != before.workers && is_about_peers(flag->name))
      c.origins.erase(flag->name);
    assign(c, *flag, text_of(option), {Source::kCommandLine, "--" + flag->name});
  }
  reconcile(c, table);
  check_purpose(command, p);
  if (p.predict->count() && command.action == Command::kTrain)
    command.action = Command::kPredict, command.prediction = read_prediction(p);
  if (!command.checkpoint.empty()) {
    if (c.workers != before.workers) keep_global_batch(c, read_manifest(command.checkpoint), int(c.workers));
    if (c.eval_only || !c.weights.empty())
      throw BadOption(c.origin(c.eval_only ? "eval-only" : "weights").place +
                      " does not go with --resume: a resumed run takes its weights from the checkpoint");
    for (const Flag& f : table)
      if (value_of(before, f) != value_of(c, f))
        command.changes.push_back(text(f.name, ' ', value_of(before, f), " -> ", value_of(c, f)));
  }
  return command;
}

}  // namespace skein::apps
