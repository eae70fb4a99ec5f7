// Reading the flags, and asking the stage that is in force.
#include "optim/gossip/graph.h"

#include "comm/communicator/communicator.h"
#include "engine/words/number.h"

namespace skein::optim {
namespace {

// "2" or "1@0,2@30": (epoch, peers), epochs rising from 0.
std::vector<std::pair<int64_t, int>> parse_peers(const std::string& flag) {
  const auto refuse = [&]() -> BadOption {
    return BadOption("--peers " + flag +
                     ": a number is needed, or peers@epoch,... rising from epoch 0, as 1@0,2@30");
  };
  const auto number = [&](const std::string& s) {
    const auto v = number_in<int>(s);
    if (!v) throw refuse();
    return *v;
  };
  std::vector<std::pair<int64_t, int>> stages;
  for (size_t at = 0; at <= flag.size();) {
    const size_t end = std::min(flag.find(',', at), flag.size()), mark = flag.find('@', at);
    const bool dated = mark < end;
    const int peers = number(flag.substr(at, (dated ? mark : end) - at));
    const int64_t epoch = dated ? number(flag.substr(mark + 1, end - mark - 1)) : 0;
    if (peers < 1) throw BadOption("--peers " + flag + ": at least 1 is needed");
    if (stages.empty() ? epoch != 0 : epoch <= stages.back().first) throw refuse();
    stages.emplace_back(epoch, peers);
    at = end + 1;
  }
  return stages;
}

}  // namespace

Graph::Graph(const Options& o, int world, const std::string& topology, int peers, bool in_turn, int64_t every)
    : name_(o.word("topology", topology)) {
  comm::TopologyOptions t;
  t.default_peers = peers;
  t.in_turn = in_turn;
  if (name_ == "base") t.base = int(o.integer("base", t.base));
  t.seed = uint64_t(o.integer("seed", 0));
  const std::string flag = o.word("peers", "");
  if (flag.empty()) {
    stages_.emplace_back(0, comm::make_topology(name_, t, world));
    if (const int p = stages_[0].second->peers()) o.chosen("peers", std::to_string(p));
    return;
  }
  const auto stages = parse_peers(flag);
  const int64_t steps = stages.size() > 1 ? o.integer("steps-per-epoch", 0) : 1;
  if (steps < 1) throw BadOption("--peers " + flag + ": changes by epoch need a run that has epochs");
  for (const auto& [epoch, p] : stages) {
    t.peers = p;
    stages_.emplace_back(epoch * steps / every, comm::make_topology(name_, t, world));
  }
}

comm::Mix Graph::at(const Worker& me, int64_t q) const {
  size_t stage = stages_.size() - 1;
  while (stages_[stage].first > q) --stage;
  return comm::in_fp32(stages_[stage].second->at(me.comm.rank(), q));
}

bool Graph::pairs_odd_with_even() const {
  for (const auto& [from, t] : stages_) {
    if (t->cycle() == 0) return false;
    for (int64_t q = 0; q < t->cycle(); ++q)
      for (comm::Rank r = 1; r < t->size(); r += 2) {
        const comm::Mix m = t->at(r, q);
        if (m.out.size() > 1 || (!m.out.empty() && m.out[0].peer % 2 != 0)) return false;
      }
  }
  return true;
}

bool Graph::symmetric() const {
  for (const auto& stage : stages_)
    if (!stage.second->symmetric()) return false;
  return true;
}

bool Graph::stands_still() const { return stages_.size() == 1 && stages_[0].second->cycle() == 1; }

Neighbors Graph::neighbors(comm::Rank r) const {
  Neighbors all;
  for (const auto& [from, t] : stages_) {
    if (t->cycle() == 0)
      for (comm::Rank other = 0; other < t->size(); ++other)
        if (other != r) all.out.insert(other), all.in.insert(other);
    for (int64_t q = 0; q < t->cycle(); ++q) {
      const comm::Mix p = t->at(r, q);
      for (const comm::Edge& e : p.out) all.out.insert(e.peer);
      for (const comm::Edge& e : p.in) all.in.insert(e.peer);
    }
  }
  return all;
}

void needs_symmetry(const Graph& g, const std::string& algorithm) {
  if (!g.symmetric())
    throw BadOption(
        text("--topology ", g.name(), ": ", algorithm,
             " needs every out-peer to be an in-peer with the same weight; allowed are ring with "
             "--peers 2, complete, base, random, bipartite-exponential, bipartite-linear, and others "
             "where --peers makes them symmetric"));
}

}  // namespace skein::optim
