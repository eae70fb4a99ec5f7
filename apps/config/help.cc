// The layout of --help, and the defaults of an algorithm, which are asked of its strategy.
#include "apps/config/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/config/algorithm_values.h"

namespace skein::apps {
namespace {

constexpr size_t kColumn = 34, kWidth = 110;

constexpr const char* kBeginning = R"(Trains image classifiers, alone or as one of many workers.

Usage: train_imagenet --data KIND[:PATH] [OPTIONS]

Start here:
  train_imagenet --data fashion-mnist                                a first training, minutes on a laptop
  train_imagenet --data imagefolder:photos --model resnet18          your own images, a directory per class
  train_imagenet --data fashion-mnist --workers 4 --algorithm sgp    four workers on this host
  train_imagenet --resume runs/NAME --epochs 20                      continue a run, or train it longer
  train_imagenet --predict new.jpg --weights runs/NAME               use the model of a run
  train_imagenet --list                                              )"
                                   R"(algorithms, optimizers, models, data, recipes
  train_imagenet --help sgp                                          )"
                                   R"(an algorithm or optimizer, its flags and defaults
)";

// Lays out `head` and then the words of `text` from column kColumn on.
std::string entry(const std::string& head, const std::string& text) {
  std::string out, line = "  " + head;
  const auto end_line = [&] { out += line + '\n', line.clear(); };
  if (line.size() + 2 > kColumn) end_line();
  line.resize(kColumn, ' ');
  bool first = true;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!first && line.size() + 1 + word.size() > kWidth) end_line(), line.assign(kColumn, ' '), first = true;
    line += (first ? "" : " ") + word;
    first = false, at = end + 1;
  }
  end_line();
  return out;
}

std::string entry(const Flag& f, const std::string& text) {
  return entry(f.kind == Flag::kSwitch ? "--[no-]" + f.name : "--" + f.name + ' ' + type_of(f), text);
}

std::string head_of(const CLI::Option& o) {
  const bool can_be_denied = !o.get_fnames().empty();
  const std::string name = can_be_denied ? "--[no-]" + o.get_lnames()[0] : o.get_name(false, true);
  const std::string type = o.get_items_expected_max() == 0 ? "" : o.get_type_name();
  return type.empty() ? name : name + ' ' + type;
}

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
bool reads(const Flag& f, const std::string& algorithm) { return among(f.algorithms, algorithm); }

optim::Values defaults(const std::string& name, int workers) {
  Config bare;
  bare.algorithm = name;
  try {
    return own_values(bare, workers);
  } catch (const BadOption&) {
    if (workers == 1) throw;
    return own_values(bare, 1);  // plain SGD is for one worker
  }
}

std::string value_in(const optim::Values& values, const std::string& name) {
  const auto at = values.find(name);
  return at == values.end() ? "" : at->second;
}

constexpr int kSomeWorkers = 4;

// The value of a flag that the optimizer reads, unless it is said otherwise.
std::string default_of(const Flag& f, const optim::RuleRow& row) {
  return f.of_algorithm() ? value_in(optim::values_of_rule(row.name, {}), f.name) : value_of(Config(), f);
}

}  // namespace

std::string help_text(const CLI::App& app) {
  std::string out = kBeginning;
  for (const std::string& group : app.get_groups()) {
    std::string lines;
    for (const CLI::Option* o : app.get_options())
      if (o->get_group() == group) lines += entry(head_of(*o), o->get_description());
    if (lines.empty()) continue;
    const bool own = group == "algorithm" || group == "optimizer";
    out += '\n' + group + (own ? " (what each reads, with its defaults: --help NAME)" : "") + ":\n" + lines;
  }
  return out;
}

std::string help_of_algorithm(const std::string& name, const Config& c) {
  const optim::StrategyRow& row = optim::strategy_row(name);
  const int workers = c.workers > 1 ? int(c.workers) : kSomeWorkers;
  const optim::Values values = defaults(row.name, workers), others = defaults(row.name, workers + 1);
  std::string out = fmt::format("{}: {}\n", row.name, row.source), common;
  if (row.asynchronous()) out += "Asynchronous: workers may be at different steps.\n";
  out += "\nFlags that it reads, and their defaults:\n";
  for (const Flag& f : flags()) {
    if (!f.of_algorithm() || !f.optimizers.empty() || (!f.algorithms.empty() && !reads(f, row.name)))
      continue;
    const std::string value = value_in(values, f.name);
    const bool needed = among(f.required_by, row.name);
    std::string text = f.help;
    if (needed)
      text += " (required)";
    else if (!value.empty())
      text += value == value_in(others, f.name) ? fmt::format(" [{}]", value)
                                                : fmt::format(" [{} with {} workers]", value, workers);
    out += entry(f, text);
  }
  return out + "\nAll other flags: train_imagenet --help\n";
}

std::string help_of_optimizer(const std::string& name) {
  const optim::RuleRow& row = optim::rule_row(name);
  std::string out = fmt::format("{}: {}\n\nFlags that it reads, and their defaults:\n", row.name, row.source);
  for (const Flag& f : flags())
    if (among(f.optimizers, row.name)) out += entry(f, fmt::format("{} [{}]", f.help, default_of(f, row)));
  out += entry("--lr NUMBER", fmt::format("for a global batch of --reference-batch [{}]", row.lr));
  out +=
      entry("--weight-decay NUMBER", fmt::format("of convolution and linear weights [{}]", row.weight_decay));
  return out + "\nAll other flags: train_imagenet --help\n";
}

std::string defaults_of_optimizer(const std::string& name) {
  const optim::RuleRow& row = optim::rule_row(name);
  std::string line = fmt::format("lr {}, weight-decay {}", row.lr, row.weight_decay);
  for (const Flag& f : flags())
    if (among(f.optimizers, name)) line += fmt::format(", {} {}", f.name, default_of(f, row));
  return line;
}

std::string defaults_of_algorithm(const std::string& name) {
  std::string line;
  const optim::Values values = defaults(name, kSomeWorkers);
  for (const Flag& f : flags()) {
    if (!reads(f, name)) continue;
    const bool needed = among(f.required_by, name);
    const std::string value = needed ? "(required)" : value_in(values, f.name);
    if (!value.empty()) line += fmt::format("{}{} {}", line.empty() ? "" : ", ", f.name, value);
  }
  return line;
}

}  // namespace skein::apps
