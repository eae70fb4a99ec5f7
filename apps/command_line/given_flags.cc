// Reads the words with CLI11. Repeated and unknown flags are collected, so that the messages about
// them are ours.
#include "apps/command_line/given_flags.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <set>

#include "apps/config/help.h"
#include "apps/config/known_words.h"
#include "data/source.h"
#include "engine/words/file.h"
#include "engine/words/find_row.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

CLI::Option* plain(CLI::App& app, const std::string& name, const char* type, const std::string& help) {
  return app.add_option(name)->description(help)->type_name(type)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* optional(CLI::App& app, const std::string& name, const char* type, const std::string& help) {
  return plain(app, name, type, help)->expected(0, 1);
}

CLI::Option* several(CLI::App& app, const std::string& name, const char* type, const std::string& help) {
  return plain(app, name, type, help)->expected(1, -1)->allow_extra_args();
}

void add(CLI::App& app, const Flag& f, const Config& defaults) {
  std::string help = f.help;
  if (!f.algorithms.empty()) help += "; of " + joined(f.algorithms);
  if (!f.optimizers.empty()) help += "; of " + joined(f.optimizers);
  const std::string otherwise = value_of(defaults, f);
  if (!otherwise.empty()) help += " [" + otherwise + "]";
  CLI::Option* o = f.kind == Flag::kSwitch
                       ? app.add_flag("--" + f.name + ",!--no-" + f.name)->description(help)
                       : plain(app, "--" + f.name, type_of(f).c_str(), help);
  o->group(f.group);
}

// The names that words give, perhaps with a value, without dashes.
std::set<std::string> names_in(const std::vector<std::string>& words) {
  std::set<std::string> names;
  for (const std::string& w : words)
    if (w.starts_with("--")) names.insert(w.substr(2, w.find('=') - 2));
  return names;
}

// CLI11 compares every option with all others, so only the flags that are given become options; all
// do for --help.
void add_all(CLI::App& app, const Flags& table, const std::vector<std::string>& words) {
  app.allow_extras();   // so that we write the message about an unknown flag
  app.set_help_flag();  // --help is ours, too
  optional(app, "--help,-h", "[NAME]",
           "show this, or the flags that an algorithm or optimizer reads and their defaults, and exit");
  plain(app, "--config", "FILE",
        "TOML file of flags, one KEY = VALUE per line; the command line takes precedence");
  plain(app, "--recipe", "NAME",
        "a training that is known to work (--list recipes); --config and the command line take precedence");
  const Config defaults;
  const bool all = std::any_of(words.begin(), words.end(), [](const std::string& w) {
    return w.starts_with("--help") || w.starts_with("-h");
  });
  const std::set<std::string> said = names_in(words);
  for (const Flag& f : table)
    if (all || said.contains(f.name) || said.contains("no-" + f.name)) add(app, f, defaults);
  optional(app, "--resume", "[DIR|auto]",
           "continue the run in DIR, or in --output, or the newest below runs/; auto: the one in "
           "--output if it has a checkpoint, else begin it");
  several(app, "--compare", "DIR...",
          "plot the runs in these directories on the same axes, in --output [compare.html], and exit");
  const char* what = "what the pictures show";
  several(app, "--predict", "PATH...",
          "JPEG and PNG files, or directories of them: name their classes by --weights")
      ->group(what);
  plain(app, "--top", "N", "classes to name for each picture [5]")->group(what);
  app.add_flag("--json")
      ->description("one JSON object per line instead of a table; also for --eval-only")
      ->group(what);
  plain(app, "--logits", "FILE.npy", "write the outputs of the model before the softmax")->group(what);
  optional(app, "--list", "[WHAT]",
           "algorithms, optimizers, models, topologies, data, recipes, or all of them");
  app.add_flag("--print")->description("show the whole effective configuration as TOML, and exit");
  app.add_flag("--version")->description("show the version, and exit");
  app.add_flag("--doctor")
      ->description(
          "check whether this machine is ready for a run with these flags, say what to do, and exit");
  app.add_flag("--plan")->description(
      "measure steps and links for half a minute, simulate every algorithm with them, list them by speed, "
      "and exit");
  plain(app, "--html", "FILE", "with --plan: write the list as a page as well");
}

std::vector<std::string> option_names(const CLI::App& app, const Flags& table) {
  std::vector<std::string> names;
  for (const Flag& f : table) names.push_back(f.name);
  for (const CLI::Option* o : app.get_options()) names.push_back(o->get_lnames()[0]);
  return names;
}

// Refuses a word without a flag, which is most likely a data set, or the directory of the given kind of data.
[[noreturn]] void refuse_word(const std::string& word, const std::string& kind) {
  const bool directory = is_directory(word);
  const std::string data = directory && !kind.empty() && kind.find(':') == std::string::npos
                               ? kind + ':' + word
                               : data::with_kind(word);
  const bool known = data != word || find_row(data::sources(), word);
  throw BadOption(text("unexpected argument '", word, "'", known ? "; did you mean --data " + data + "?" : "",
                       "; see --help"));
}

[[noreturn]] void refuse_flag(const std::string& said, const std::vector<std::string>& names) {
  const std::string name = said.substr(std::min(said.find_first_not_of('-'), said.size()));
  const std::string answer = answer_to_flag(name), meant = nearest(name, names);
  throw BadOption(text("unknown flag ", said,
                       !answer.empty()  ? ": " + answer
                       : !meant.empty() ? "; did you mean --" + meant + "?"
                                        : "",
                       "; see --help"));
}

}  // namespace

GivenFlags::GivenFlags(int argc, const char* const* argv, const Flags& table) {
  CLI::App app("Trains image classifiers, alone or as one of many workers.", "train_imagenet");
  add_all(app, table, {argv, argv + argc});
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    throw BadOption(text(e.what(), "; see --help"));
  } catch (const std::out_of_range&) {  // CLI11 reads what is given to a flag that is on or off as a number
    throw BadOption("a number given to a flag that takes none is too large; see --help");
  }
  for (const CLI::Option* o : app.get_options())
    if (o->count()) texts_[o->get_lnames()[0]] = o->results();
  if (has("help")) {
    usage_ = help_text(app);
  } else if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
    if (extras[0][0] != '-') refuse_word(extras[0], text_of("data"));
    refuse_flag(extras[0].substr(0, extras[0].find('=')), option_names(app, table));
  }
}

std::string GivenFlags::text_of(const std::string& name) const {
  const std::vector<std::string> said = all_of(name);
  for (const std::string& s : said)
    if (s != said.front()) throw BadOption(text("--", name, " is given as ", said.front(), " and as ", s));
  return said.empty() ? "" : said.front();
}

std::vector<std::string> GivenFlags::all_of(const std::string& name) const {
  const auto at = texts_.find(name);
  return at == texts_.end() ? std::vector<std::string>() : at->second;
}

}  // namespace skein::apps
