// The table of strategies as code, and the reading of their options.
#include "optim/strategy.h"

#include <algorithm>
#include <charconv>

#include "engine/nearest.h"
#include "optim/consensus.h"

namespace skein::optim {

#define STRATEGY(name, source, mixes, world1, peers, async) \
  std::unique_ptr<Strategy> make_##name(const Options&, int world);
#include "optim/strategies.def"
#undef STRATEGY

namespace {

std::string hyphens(std::string s) {
  std::replace(s.begin(), s.end(), '_', '-');
  return s;
}

// Names as on the command line; built once, so that the rows can point into it.
const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {
#define STRATEGY(name, source, mixes, world1, peers, async) hyphens(#name),
#include "optim/strategies.def"
#undef STRATEGY
  };
  return all;
}

template <class T>
bool parse(const std::string& s, T& v) {
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  return error == std::errc() && end == s.data() + s.size();
}

[[noreturn]] void refuse(const std::string& key, const std::string& value, const char* wanted) {
  throw BadOption(text("--", key, " ", value, ": ", wanted, " is needed"));
}

}  // namespace

const std::vector<StrategyRow>& strategies() {
  static const std::vector<StrategyRow> rows = [] {
    std::vector<StrategyRow> r;
    const auto add = [&](const char* source, bool mixes, bool world1, bool peers, bool async, auto make) {
      r.push_back({names()[r.size()].c_str(), source, mixes, world1, peers, async, make});
    };
#define STRATEGY(name, source, mixes, world1, peers, async) \
  add(source, mixes, world1, peers, async, &make_##name);
#include "optim/strategies.def"
#undef STRATEGY
    return r;
  }();
  return rows;
}

const StrategyRow& strategy_row(const std::string& name) {
  const std::string wanted = hyphens(name);
  for (const StrategyRow& row : strategies())
    if (wanted == row.name) return row;
  throw BadOption(text("--algorithm ", name, ": no such algorithm; did you mean '", nearest(wanted, names()),
                       "'? All of them: train_imagenet --list algorithms"));
}

std::unique_ptr<Strategy> make_strategy(const std::string& name, const Options& options, int world) {
  CHECK(world >= 1, world);
  return strategy_row(name).make(options, world);
}

void Strategy::average(Worker& me) { consensus(me.comm, me.x.clone(), me.x); }
void Strategy::serve(comm::Communicator&) { CHECK(false, "this algorithm has no server"); }
void Strategy::evaluated(Worker& me, const Tensor& y) { consensus(me.comm, averaged(me), y); }

void Worker::local_step(const Tensor& y) {
  if (samples > 0) rule.step(y, g, x, lr);
}

double Options::number(const std::string& key, double otherwise) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return otherwise;
  double v = 0;
  if (!parse(at->second, v)) refuse(key, at->second, "a number");
  return v;
}

int64_t Options::integer(const std::string& key, int64_t otherwise) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return otherwise;
  int64_t v = 0;
  if (!parse(at->second, v)) refuse(key, at->second, "a whole number");
  return v;
}

bool Options::flag(const std::string& key, bool otherwise) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return otherwise;
  const std::string& v = at->second;
  if (v == "true" || v == "on" || v == "yes" || v == "1" || v.empty())
    return true;  // a bare flag has no value
  if (v == "false" || v == "off" || v == "no" || v == "0") return false;
  refuse(key, v, "on or off");
}

std::string Options::word(const std::string& key, std::string otherwise) const {
  const auto at = values_.find(key);
  return at == values_.end() ? otherwise : at->second;
}

}  // namespace skein::optim
