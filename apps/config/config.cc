// The table of options at run time: finds, checks, sets and prints its rows.
#include "apps/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/config/known_words.h"
#include "data/source.h"
#include "engine/words/find_row.h"
#include "engine/words/json.h"
#include "engine/words/number.h"
#include "engine/words/split.h"
#include "optim/strategy.h"

namespace skein::apps {
namespace {

template <class T>
constexpr Flag::Kind kKindOf = Flag::kWord;
template <>
constexpr Flag::Kind kKindOf<Count> = Flag::kCount;
template <>
constexpr Flag::Kind kKindOf<Real> = Flag::kReal;
template <>
constexpr Flag::Kind kKindOf<Switch> = Flag::kSwitch;
template <>
constexpr Flag::Kind kKindOf<Batch> = Flag::kBatch;

// Checks the range "low..high"; either end may be open.
void check_range(double value, const Flag& flag, const std::string& said, const std::string& place) {
  const size_t dots = flag.allowed.find("..");
  if (dots == std::string::npos) return;
  const std::string from = flag.allowed.substr(0, dots), to = flag.allowed.substr(dots + 2);
  if (value >= number_in<double>(from).value_or(-HUGE_VAL) &&
      value <= number_in<double>(to).value_or(HUGE_VAL))
    return;
  const std::string range = to.empty() ? from + " or more" : text("from ", from, " to ", to);
  throw BadOption(text(place, ": ", said, " is out of range; allowed: ", range));
}

void check_choice(const Flag& flag, const std::string& said, const std::string& place) {
  if (flag.allowed.find('|') == std::string::npos) return;
  const std::vector<std::string> choices = split(flag.allowed, '|');
  if (std::find(choices.begin(), choices.end(), said) != choices.end()) return;
  throw BadOption(
      text(place, ": there is no '", said, "'; allowed: ", joined(choices), did_you_mean(said, choices)));
}

Count parse_count(const Flag& flag, const std::string& said, const std::string& place) {
  const auto n = number_in<Count>(said);
  if (!n) throw BadOption(text(place, ": '", said, "' is not a whole number"));
  check_range(double(*n), flag, said, place);
  return *n;
}

Real parse_real(const Flag& flag, const std::string& said, const std::string& place) {
  const Real r = number_in<Real>(said).value_or(NAN);
  if (!std::isfinite(r)) throw BadOption(text(place, ": '", said, "' is not a number"));
  check_range(r, flag, said, place);
  return r;
}

Switch parse_switch(const std::string& said, const std::string& place) {
  if (said != "true" && said != "false")
    throw BadOption(text(place, ": '", said, "' is neither true nor false"));
  return said == "true";
}

// The rows of a table that name the flag: all of them, or only those that have no default for it.
template <class Rows>
std::vector<std::string> readers(const Rows& rows, const std::string& flag, bool required) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    for (const std::string& own : split(row.flags, ' '))
      if (own == flag + '!' || (own == flag && !required)) names.push_back(row.name);
  return names;
}

Flag with_readers(Flag f) {
  f.optimizers = readers(optim::rules(), f.name, false);
  if (!f.of_algorithm()) return f;
  f.group = f.optimizers.empty() ? "algorithm" : "optimizer";
  f.fixed_on_resume = true;
  f.algorithms = readers(optim::strategies(), f.name, false);
  f.required_by = readers(optim::strategies(), f.name, true);
  return f;
}

// A run must keep the kind in "imagefolder:/my/pictures", but the data may move.
std::string what_binds(const Flag& flag, const std::string& value) {
  return flag.name == "data" ? value.substr(0, value.find(':')) : value;
}

}  // namespace

const Flags& flags() {
  constexpr bool Fixed = true, Free = false;
  static const Flags table = {
#define FLAG(group, Type, name, otherwise, allowed, resume, help) \
  with_readers({group, hyphens(#name), kKindOf<Type>, &Config::name, allowed, resume, help}),
#define OWN_FLAG(Type, name, allowed, help) \
  with_readers({"", hyphens(#name), kKindOf<Type>, {}, allowed, true, help}),
#include "apps/config/flags.def"
#undef OWN_FLAG
#undef FLAG
  };
  (void)Fixed, (void)Free;
  return table;
}

const Flag* find_flag(const Flags& table, const std::string& name) { return find_row(table, hyphens(name)); }

Origin Config::origin(const std::string& flag) const {
  const auto it = origins.find(flag);
  return it == origins.end() ? Origin{Source::kDefault, "--" + flag} : it->second;
}

void assign(Config& c, const Flag& flag, const std::string& given, const Origin& from) {
  if (const std::string answer = answer_to_value(flag.name, given); !answer.empty())
    throw BadOption(text(from.place, ": there is no '", given, "': ", answer));
  const std::string said = flag.name == "data" ? data::with_kind(given) : given;
  const std::string before = value_of(c, flag);
  const Origin earlier = c.origin(flag.name);
  check_choice(flag, said, from.place);
  Config next = c;
  std::string own = said;  // as a file or another start of the command may say it, too: 0.95 for .95
  switch (flag.kind) {
    case Flag::kWord:
      if (!is_utf8(said))
        throw BadOption(text(from.place, ": '", said,
                             "' is not UTF-8, and config.toml could not be read again; rename it"));
      if (auto* f = std::get_if<Word Config::*>(&flag.field)) next.*(*f) = said;
      break;
    case Flag::kCount: {
      const Count n = parse_count(flag, said, from.place);
      if (auto* f = std::get_if<Count Config::*>(&flag.field)) next.*(*f) = n;
      own = std::to_string(n);
      break;
    }
    case Flag::kReal: {
      const Real r = parse_real(flag, said, from.place);
      if (auto* f = std::get_if<Real Config::*>(&flag.field)) next.*(*f) = r;
      own = fmt::format("{}", r);
      break;
    }
    case Flag::kSwitch: {
      const Switch s = parse_switch(said, from.place);
      if (auto* f = std::get_if<Switch Config::*>(&flag.field)) next.*(*f) = s;
      own = s ? "true" : "false";
      break;
    }
    case Flag::kBatch:
      next.*std::get<Batch Config::*>(flag.field) = BatchSize::parse(said, from.place);
      break;
  }
  if (flag.of_algorithm()) next.of_algorithm[flag.name] = own;
  const std::string now = value_of(next, flag);
  if (flag.fixed_on_resume && earlier.source == Source::kResumed &&
      what_binds(flag, now) != what_binds(flag, before))
    throw BadOption(text(from.place, ": ", now, ", but the run to be resumed has ", flag.name, " = ", before,
                         " (", earlier.place,
                         "); leave it out to continue that run, or start a new one without --resume"));
  Origin& origin = next.origins[flag.name] = from;
  origin.since = now == before ? earlier.since : from.source;
  c = std::move(next);
}

std::string value_of(const Config& c, const Flag& flag) {
  struct Read {
    const Config& c;
    const Flag& flag;
    std::string operator()(std::monostate) const {
      const auto it = c.of_algorithm.find(flag.name);
      return it == c.of_algorithm.end() ? "" : it->second;
    }
    std::string operator()(Word Config::*f) const { return c.*f; }
    std::string operator()(Count Config::*f) const { return std::to_string(c.*f); }
    std::string operator()(Real Config::*f) const { return fmt::format("{}", c.*f); }
    std::string operator()(Switch Config::*f) const { return c.*f ? "true" : "false"; }
    std::string operator()(Batch Config::*f) const { return (c.*f).words(); }
  };
  return std::visit(Read{c, flag}, flag.field);
}

bool asks_for(const Config& c, const Flag& flag) {
  return c.origin(flag.name).source > Source::kResumed && value_of(c, flag) != value_of({}, flag);
}

bool asks_for(const Config& c, const std::string& name) { return asks_for(c, *find_flag(flags(), name)); }

std::string type_of(const Flag& flag) {
  if (flag.allowed.find('|') != std::string::npos) return flag.allowed;
  if (flag.kind == Flag::kBatch) return "N[,N...]|auto";
  return flag.kind == Flag::kCount ? "N" : flag.kind == Flag::kReal ? "NUMBER" : "TEXT";
}

Count global_batch_of(const Config& c, Count workers) {
  const BatchSize& b = c.batch_size;
  if (!b.shares.empty()) {
    if (Count(b.shares.size()) != workers)
      throw BadOption(text(c.origin("batch-size").place, ": ", b.words(), " is for ", b.shares.size(),
                           " workers, and there ", workers == 1 ? "is 1" : text("are ", workers)));
    return std::accumulate(b.shares.begin(), b.shares.end(), Count(0));
  }
  return c.global_batch > 0 ? c.global_batch : b.most * workers;
}

void share_batch(Config& c, Count global_batch, Count workers, const std::vector<Count>& shares) {
  c.global_batch = global_batch;
  c.batch_size.shares = shares;
  c.batch_size.most = shares.empty() ? (global_batch + workers - 1) / workers
                                     : *std::max_element(shares.begin(), shares.end());
  c.workers = workers;
}

DType activations_of(const Config& c) {
  return one_of<DType>("--precision", c.precision, {{"fp32", kF32}, {"bf16", kBF16}, {"fp16", kF16}});
}

int gpu_of(const Config& c) {
  const std::string prefix = "cuda:", &said = c.device;
  if (said == "auto" || said == "cpu" || said == "cuda") return -1;
  if (said.starts_with(prefix))
    if (const auto index = number_in<int>(said.substr(prefix.size())); index && *index >= 0) return *index;
  throw BadOption(text(c.origin("device").place, ": there is no '", said,
                       "'; allowed: auto, cpu, cuda, and cuda:0, cuda:1, ... for one GPU",
                       did_you_mean(said, {"auto", "cpu", "cuda"})));
}

Every parse_every(const Config& c) {
  std::string number = c.checkpoint_every;
  bool steps = false;
  for (const char* unit : {"epochs", "epoch", "steps", "step"})
    if (const size_t n = std::string(unit).size(); number.size() > n && number.ends_with(unit)) {
      number.resize(number.size() - n);
      steps = unit[0] == 's';
      break;
    }
  while (!number.empty() && number.back() == ' ') number.pop_back();
  const Count n = number_in<Count>(number).value_or(-1);
  if (n < 0)
    throw BadOption(text(c.origin("checkpoint-every").place, ": '", c.checkpoint_every,
                         "' is neither a number of epochs nor of steps, as in 2 or 500steps"));
  return steps ? Every{0, n} : Every{n, 0};
}

}  // namespace skein::apps
