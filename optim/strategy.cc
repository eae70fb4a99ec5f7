// The table of strategies as code, and the reading of their options.
#include "optim/strategy.h"

#include "engine/words/find_row.h"
#include "engine/words/number.h"
#include "optim/consensus.h"

namespace skein::optim {

#define STRATEGY(name, source, mixes, world1, center, apart, serve, flags) \
  std::unique_ptr<Strategy> make_##name(const Options&, int world);
#include "optim/strategies.def"
#undef STRATEGY
void serve_center(Strategy&, comm::Communicator& hub);  // center/turns.cc
void serve_lsgd(Strategy&, comm::Communicator& hub);

namespace {

// Names as on the command line; built once, so that the rows can point into it.
const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {
#define STRATEGY(name, source, mixes, world1, center, apart, serve, flags) hyphens(#name),
#include "optim/strategies.def"
#undef STRATEGY
  };
  return all;
}

// The shortest text that reads back as the same number.
std::string shortest(double v) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, v).ptr};
}

[[noreturn]] void refuse(const std::string& key, const std::string& value, const char* wanted) {
  throw BadOption(text("--", key, " ", value, ": ", wanted, " is needed"));
}

template <class T>
T within(const std::string& key, T v, T low, T high) {
  if (v >= low && v <= high) return v;
  const bool limited = high < std::numeric_limits<T>::max();
  throw BadOption(text("--", key, " ", v, ": allowed is ",
                       limited ? text("from ", low, " to ", high) : text(low, " or more")));
}

}  // namespace

const std::vector<StrategyRow>& strategies() {
  static const std::vector<StrategyRow> rows = [] {
    std::vector<StrategyRow> r;
#define STRATEGY(name, source, mixes, world1, center, apart, serve, flags) \
  r.push_back(                                                             \
      {names()[r.size()].c_str(), source, mixes, world1, center, Apart::apart, &make_##name, serve, flags});
#include "optim/strategies.def"
#undef STRATEGY
    return r;
  }();
  return rows;
}

const StrategyRow& strategy_row(const std::string& name) {
  const std::string wanted = hyphens(name);
  if (const StrategyRow* row = find_row(strategies(), wanted)) return *row;
  throw BadOption(text("--algorithm ", name,
                       ": there is no such algorithm; train_imagenet --list algorithms shows all",
                       did_you_mean(wanted, names())));
}

std::unique_ptr<Strategy> make_strategy(const std::string& name, const Options& options, int world) {
  CHECK(world >= 1, world);
  return strategy_row(name).make(options, world);
}

void Strategy::write_model(Worker& me, const Tensor& y) { consensus(me.comm, contribution(me), y); }

void Worker::local_step(const Tensor& y) {
  if (share > 0) rule.step(y, g, x, lr);
}

bool has_dedicated_server(const Options& o) {
  return one_of<bool>("--servers", o.word("servers", "inline"), {{"inline", false}, {"dedicated", true}});
}

BufferPolicy buffer_policy(const Options& o) {
  return one_of<BufferPolicy>("--bn-policy", o.word("bn-policy", "recompute"),
                              {{"local", BufferPolicy::kLocal},
                               {"mix", BufferPolicy::kMix},
                               {"recompute", BufferPolicy::kRecompute}});
}

Values values_in_force(const std::string& name, Options options, int world) {
  Values values;
  options.report_to(values);
  make_strategy(name, options, world);
  buffer_policy(options);  // of every algorithm: what is evaluated depends on it
  return values;
}

void Options::chosen(const std::string& key, const std::string& value) const {
  if (in_force_ && !value.empty()) (*in_force_)[key] = value;
}

// The value given, which is then the one in force; null: there is none.
const std::string* Options::find(const std::string& key) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return nullptr;
  chosen(key, at->second);
  return &at->second;
}

double Options::number(const std::string& key, double otherwise, double low, double high) const {
  const std::string* said = find(key);
  if (!said) return chosen(key, shortest(otherwise)), otherwise;
  if (const auto v = number_in<double>(*said)) return within(key, *v, low, high);
  refuse(key, *said, "a number");
}

int64_t Options::integer(const std::string& key, int64_t otherwise, int64_t low) const {
  const std::string* said = find(key);
  if (!said) return chosen(key, std::to_string(otherwise)), otherwise;
  if (const auto v = number_in<int64_t>(*said)) return within(key, *v, low, INT64_MAX);
  refuse(key, *said, "a whole number");
}

bool Options::flag(const std::string& key, bool otherwise) const {
  const std::string* said = find(key);
  if (!said) return chosen(key, otherwise ? "true" : "false"), otherwise;
  const std::string& v = *said;
  if (v == "true" || v == "on" || v == "yes" || v == "1" || v.empty())
    return true;  // a bare flag has no value
  if (v == "false" || v == "off" || v == "no" || v == "0") return false;
  refuse(key, v, "on or off");
}

std::string Options::word(const std::string& key, std::string otherwise) const {
  const std::string* said = find(key);
  if (!said) chosen(key, otherwise);
  return said ? *said : otherwise;
}

}  // namespace skein::optim
