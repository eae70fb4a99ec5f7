// The table of strategies as code.
#include "optim/strategy.h"

#include "comm/communicator/communicator.h"
#include "engine/words/find_row.h"
#include "optim/consensus.h"
#include "optim/strategies.h"

namespace skein::optim {
namespace {

// Names as on the command line; built once, so that the rows can point into it.
const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {
#define STRATEGY(name, source, mixes, world1, model, apart, codec, flags) hyphens(#name),
#include "optim/strategies.def"
#undef STRATEGY
  };
  return all;
}

}  // namespace

const std::vector<StrategyRow>& strategies() {
  static const std::vector<StrategyRow> rows = [] {
    std::vector<StrategyRow> r;
#define STRATEGY(name, source, mixes, world1, model, apart, codec, flags)                                  \
  r.push_back({names()[r.size()].c_str(), source, mixes, world1, Model::model, Apart::apart, &make_##name, \
               codec, flags});
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
  const StrategyRow& row = strategy_row(name);
  std::unique_ptr<Strategy> made = row.make(options, world);
  if (world > 1 && codec_of(options) && !row.codec)
    throw BadOption(text("--wire ", options.word("wire", ""), ": ", row.name,
                         " sends what cannot be coded; allowed are fp32 and ",
                         "bf16, or another algorithm: docs/codecs.md"));
  return made;
}

void Strategy::write_model(Worker& me, const Tensor& y) {
  consensus(me.comm, contribution(me), y, share_of_model(me));
}

Tensor Worker::visible(const Shape& shape, DType type) const {
  return x.device().is_host() ? Tensor(shape, type, comm.allocator()) : Tensor(shape, type, x.device());
}

void Worker::local_step(const Tensor& y) {
  if (share > 0) rule.step(y, g, x, lr);
}

Values values_in_force(const std::string& name, Options options, int world) {
  Values values;
  options.report_to(values);
  make_strategy(name, options, world);
  buffer_policy(options);  // of every algorithm: what is evaluated depends on it
  return values;
}

}  // namespace skein::optim
