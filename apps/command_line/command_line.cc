// Which action the command line asks for, and whether all its flags go with it.
#include "apps/command_line/command_line.h"

#include "apps/command_line/layers.h"
#include "apps/command_line/resumed_run.h"
#include "apps/config/help.h"
#include "apps/config/reconcile.h"
#include "engine/words/find_row.h"
#include "engine/words/number.h"
#include "optim/strategy.h"

namespace skein::apps {
namespace {

std::string help_for(const GivenFlags& given, const Flags& table) {
  const std::string name = given.text_of("help");
  if (name.empty()) return given.usage();
  const bool optimizer = find_row(optim::rules(), name),
             algorithm = find_row(optim::strategies(), hyphens(name));
  if (optimizer && !algorithm) return help_of_optimizer(name);
  Config c;
  if (given.has("workers"))
    assign(c, *find_flag(table, "workers"), given.text_of("workers"), {Source::kCommandLine, "--workers"});
  return help_of_algorithm(name, c) + (optimizer ? '\n' + help_of_optimizer(name) : "");
}

// With --compare only --output may be given.
void read_comparison(Command& command, const GivenFlags& given, const Flags& table) {
  command.compare = given.all_of("compare");
  for (const Flag& f : table)
    if (given.has(f.name) && f.name != "output")
      throw BadOption("--" + f.name + " does not go with --compare, which trains nothing");
  command.config.output = given.has("output") ? given.text_of("output") : "compare.html";
}

// The action; of several, the one that comes first here.
Command::Action action_of(const GivenFlags& given) {
  using Row = std::pair<const char*, Command::Action>;
  for (const auto& [flag, action] :
       {Row{"help", Command::kHelp}, Row{"version", Command::kVersion}, Row{"list", Command::kList},
        Row{"compare", Command::kCompare}, Row{"doctor", Command::kDoctor}, Row{"plan", Command::kPlan},
        Row{"print", Command::kPrint}})
    if (given.has(flag)) return action;
  return Command::kTrain;
}

Prediction read_prediction(const GivenFlags& given) {
  Prediction how;
  how.paths = given.all_of("predict");
  how.json = given.has("json");
  how.logits = given.text_of("logits");
  const std::string top = given.text_of("top");
  if (!top.empty()) how.top = number_in<int64_t>(top).value_or(0);
  if (how.top < 1) throw BadOption(text("--top: '", top, "' is not a number of classes, 1 or more"));
  return how;
}

// Refuses flags about pictures without --predict, and flags that belong to another purpose.
void check_purpose(const Command& command, const GivenFlags& given) {
  // A file may give it: that of the run whose model is looked at.
  const char* const other = given.has("predict")                 ? "--predict"
                            : command.config.eval_only           ? "--eval-only"
                            : command.action == Command::kDoctor ? "--doctor"
                                                                 : nullptr;
  if (given.has("simulate") && other)
    throw BadOption(text("--simulate does not go with ", other, ", which trains nothing"));
  if (!given.has("predict")) {
    for (const char* flag : {"top", "logits"})
      if (given.has(flag)) throw BadOption(text("--", flag, " goes with --predict PATH..."));
    if (given.has("json") && !command.config.eval_only)
      throw BadOption("--json goes with --predict PATH... or --eval-only");
    return;
  }
  const Config& c = command.config;
  if (given.has("resume") || c.eval_only || !c.join.empty())
    throw BadOption(text(given.has("resume") ? "--resume"
                         : c.eval_only       ? "--eval-only"
                                             : "--join",
                         " does not go with --predict"));
  if (c.weights.empty()) throw BadOption("--predict needs --weights FILE: the model.safetensors of a run");
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv, const Flags& table, const AskJob& ask) {
  const GivenFlags given(argc, argv, table);
  Command command;
  command.action = action_of(given);
  switch (command.action) {
    case Command::kHelp:
      command.help = help_for(given, table);
      return command;
    case Command::kVersion:
      return command;
    case Command::kList:
      command.list = given.text_of("list");
      return command;
    case Command::kCompare:
      read_comparison(command, given, table);
      return command;
    default:
      break;
  }
  const Config before = read_layers(command, given, table, ask);
  const Config& c = command.config;
  try {
    reconcile(command.config, table);
  } catch (const BadOption& e) { throw BadOption(with_place(c, e.what())); }
  check_purpose(command, given);
  command.html = given.text_of("html");
  if (given.has("html") && command.action != Command::kPlan) throw BadOption("--html goes with --plan");
  if (given.has("resume") && command.action == Command::kPlan)
    throw BadOption("--resume does not go with --plan, which trains nothing");
  if (given.has("resume") && !c.join.empty())
    throw BadOption(c.origin("join").place +
                    " does not go with --resume: the members of the running job have its state");
  command.json = given.has("json");
  if (given.has("predict") && command.action == Command::kTrain)
    command.action = Command::kPredict, command.prediction = read_prediction(given);
  if (!command.checkpoint.empty()) continue_run(command, before, table);
  return command;
}

}  // namespace skein::apps
