// Asks the strategy itself for the values of its flags, and checks what they mean for a run's length.
#include "apps/config/algorithm_values.h"

#include <fmt/format.h>

#include <charconv>

#include "apps/base/printable.h"

namespace skein::apps {

optim::Options options_of(const Config& c, int64_t steps_per_epoch) {
  optim::Options options;
  options.set("seed", std::to_string(c.seed));
  options.set("steps-per-epoch", std::to_string(steps_per_epoch));
  options.set("optimizer", c.optimizer);
  options.set("wire", c.wire);
  options.set("momentum", fmt::format("{}", c.momentum));
  options.set("nesterov", c.nesterov ? "true" : "false");
  if (c.layer_decay != 1 || c.head_rate != 1 || c.norm_rate != 1) options.set("rates", "differ");
  if (!c.record.empty()) options.set("record", c.record);
  if (!c.replay.empty()) options.set("replay", c.replay);
  for (const auto& [name, value] : c.of_algorithm) options.set(name, value);
  return options;
}

optim::Values own_values(const Config& c, int world) {
  optim::Values own;
  const auto take = [&](const optim::Values& values) {
    for (const auto& [name, value] : values)
      if (const Flag* f = find_flag(flags(), name); f && f->of_algorithm()) own[name] = value;
  };
  take(optim::values_in_force(c.algorithm, options_of(c), world));
  take(optim::values_of_rule(c.optimizer, options_of(c)));
  return own;
}

void settle_algorithm(Config& c, int world) {
  std::erase_if(c.of_algorithm, [&](const auto& own) { return c.origin(own.first).by_default; });
  for (const auto& [name, value] : own_values(c, world)) {
    if (!c.of_algorithm.contains(name)) (c.origins[name] = c.origin(name)).by_default = true;
    c.of_algorithm[name] = value;
  }
}

void drop_flags_of_number(optim::Values& flags) {
  for (const char* of_number : {"topology", "peers", "base", "hierarchy", "groups"}) flags.erase(of_number);
}

std::string adapt_algorithm(Config& c, int world) try {
  settle_algorithm(c, world);
  return "";
} catch (const BadOption& e) {
  drop_flags_of_number(c.of_algorithm);
  if (std::string_view(e.what()).starts_with("--alpha ")) c.of_algorithm.erase("alpha");
  settle_algorithm(c, world);
  return text(e.what(), "; ", world, " workers take the default instead");
}

void recognize_defaults(Config& c) {
  for (const auto& [name, value] : c.of_algorithm) {
    Config without = c;
    without.of_algorithm.erase(name);
    try {
      const optim::Values values = own_values(without, int(c.workers));
      const auto otherwise = values.find(name);
      c.origins[name].by_default = otherwise != values.end() && otherwise->second == value;
    } catch (const BadOption&) {  // the other flags need it, so the user chose it
    }
  }
}

namespace {

// The value of a flag of the algorithm; 0 if it does not read the flag.
int64_t number_of(const Config& c, const std::string& flag) {
  const auto at = c.of_algorithm.find(flag);
  int64_t n = 0;
  if (at != c.of_algorithm.end())
    std::from_chars(at->second.data(), at->second.data() + at->second.size(), n);
  return n;
}

// The epoch of the last change in --peers 1@0,2@30; 0: it never changes.
int64_t last_change(const Config& c) {
  const auto at = c.of_algorithm.find("peers");
  if (at == c.of_algorithm.end()) return 0;
  const std::string& peers = at->second;
  int64_t epoch = 0;
  if (const size_t mark = peers.rfind('@'); mark != std::string::npos)
    std::from_chars(peers.data() + mark + 1, peers.data() + peers.size(), epoch);
  return epoch;
}

}  // namespace

std::vector<std::string> never_reached(const Config& c, int world, int64_t total_steps,
                                       int64_t steps_per_epoch) {
  std::vector<std::string> lines;
  const std::string run = "this run has " + counted(total_steps, "step");
  const auto never = [&](const std::string& what, const std::string& flag) {
    lines.push_back(fmt::format("{}: {} and --{} is {}", what, run, flag, c.of_algorithm.at(flag)));
  };
  const optim::StrategyRow& row = optim::strategy_row(c.algorithm);
  if (world == 1) {
    if (row.world1_is_sgd && c.algorithm != "sgd" && c.algorithm != "allreduce")
      lines.push_back(
          fmt::format("one worker alone: {} is then plain sgd; --workers N starts more", c.algorithm));
    return lines;
  }
  const int64_t from = number_of(c, "switch-step"), pieces = std::max<int64_t>(1, number_of(c, "fragments"));
  const int64_t tau = c.algorithm == "qsr" ? 0 : number_of(c, "tau");  // its last round is cut short
  if (from >= total_steps && from > 0)
    never("the switch to local-sgd never comes", "switch-step");
  else if (tau / pieces > total_steps - from)
    never(from > 0 ? "after the switch the workers never meet" : "the workers never meet", "tau");
  else if (tau > total_steps - from)
    never("some pieces of the model are never exchanged", "tau");
  if (number_of(c, "tau-local") > total_steps)
    never("the workers are never pulled to a leader", "tau-local");
  else if (number_of(c, "tau-global") > total_steps)
    never("the groups of workers never meet", "tau-global");
  if (number_of(c, "exact-every") > total_steps) never("no exact average is taken", "exact-every");
  if (last_change(c) * steps_per_epoch >= total_steps && last_change(c) > 0)
    never("the number of peers never changes to its last value", "peers");
  return lines;
}

}  // namespace skein::apps
