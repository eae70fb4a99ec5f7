// The flags of gossip, its two halves, and meetings.
#include "optim/gossip/gossip.h"

#include "comm/communicator/words.h"
#include "engine/vectors/vec.h"
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

Graph::Graph(const Options& o, int world, const std::string& topology, int peers, bool in_turn)
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
    stages_.emplace_back(epoch * steps, comm::make_topology(name_, t, world));
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

void needs_symmetry(const Graph& g, const std::string& algorithm) {
  if (!g.symmetric())
    throw BadOption(
        text("--topology ", g.name(), ": ", algorithm,
             " needs every out-peer to be an in-peer with the same weight; allowed are ring with "
             "--peers 2, complete, base, random, bipartite-exponential, bipartite-linear, and others "
             "where --peers makes them symmetric"));
}

void give(comm::Communicator& comm, const comm::Mix& p, comm::Tag tag, int64_t k, const Tensor& x, double w) {
  std::vector<comm::Share> shares;
  for (const comm::Edge& e : p.out) shares.push_back({e.peer, float(e.weight), e.weight * w});
  if (!shares.empty()) comm.push(shares, tag, k, x);
}

void combine(const comm::Communicator& comm, MixArgs a, const comm::Mix& p,
             const std::vector<comm::Message>& shares) {
  for (const comm::Message& m : shares) a.in.push_back(m.payload);
  a.wire = comm.options().wire;
  for (const comm::Edge& e : p.out) a.sent.push_back(float(e.weight));
  mix(a);
}

double mean_weight(comm::Communicator& comm, double w) {
  double sum = 0;
  for (const auto& other : comm::gather_numbers(comm, {w})) sum += other[0];
  return sum / comm.size();
}

Gossip::Gossip(const Options& o, int world, const std::string& topology, int peers)
    : graph_(o, world, topology, peers), mixes_(buffer_policy(o) == BufferPolicy::kMix) {}

void Gossip::give(Worker& me, int64_t k, const Tensor& x, double w) {
  p_ = graph_.at(me, k);
  optim::give(me.comm, p_, kShare, k, x, w);
}

void Gossip::take(Worker& me, int64_t k, const Tensor& y, const Tensor& x) {
  give_buffers(me, k, 1);
  combine(me.comm, {.y = y, .x = x, .self = p_.self}, p_, take_shares(me, kShare, k, x));
  take_buffers(me, k, 1);
}

void Gossip::take(Worker& me, int64_t k, const Tensor& x, double& w, const Tensor& z) {
  give_buffers(me, k, w);
  const std::vector<comm::Message> shares = take_shares(me, kShare, k, x);
  w *= p_.self;
  for (const comm::Message& m : shares) w += m.weight;
  combine(me.comm, {.y = x, .x = x, .self = p_.self, .z = z, .by = 1 / w}, p_, shares);
  take_buffers(me, k, w);
}

void Gossip::average(Worker& me, const Tensor& x) {
  average_buffers(me, 1);
  me.comm.mean(x).wait();
}

void Gossip::average(Worker& me, const Tensor& x, double& w, const Tensor& z) {
  average_buffers(me, w);
  me.comm.mean(x).wait();
  w = mean_weight(me.comm, w);
  scaled_copy(z, 1 / w, x);
}

// Payloads are of the type they travelled in.
std::vector<comm::Message> Gossip::take_shares(Worker& me, comm::Tag tag, int64_t k,
                                               const Tensor& like) const {
  std::vector<comm::Message> shares;
  for (const comm::Edge& e : p_.in)
    shares.push_back(me.comm.take(e.peer, tag, k, like, comm::Precision::kWire));
  return shares;
}

void Gossip::give_buffers(Worker& me, int64_t k, double w) {
  if (!mixes(me)) return;
  if (!buffers_) buffers_ = me.buffers.clone();
  scaled_copy(buffers_, w, me.buffers);
  optim::give(me.comm, p_, kBuffers, k, buffers_, w);
}

void Gossip::take_buffers(Worker& me, int64_t k, double w) {
  if (!mixes(me)) return;
  MixArgs a{.y = me.buffers, .x = buffers_, .self = p_.self, .z = me.buffers, .by = 1 / w};
  for (const comm::Message& m : take_shares(me, kBuffers, k, me.buffers)) a.in.push_back(m.payload);
  mix(a);
}

void Gossip::average_buffers(Worker& me, double w) const {
  if (!mixes(me)) return;
  scale(me.buffers, w);
  me.comm.mean(me.buffers).wait();
}

void Meeting::meet(comm::Communicator& comm, const std::function<void()>& meanwhile) {
  for (comm::Rank r = 0; r < comm.size(); ++r)
    if (r != comm.rank()) comm.push(r, tag_, round_, 1, Tensor::zeros({1}));
  for (comm::Rank r = 0; r < comm.size(); ++r)
    while (!has_come(comm, r)) {
      meanwhile();
      if (!has_come(comm, r)) here_[size_t(r)] = comm.take_within(kNap, r, tag_, round_).has_value();
    }
  here_.clear();
  ++round_;
}

bool Meeting::has_come(comm::Communicator& comm, comm::Rank r) {
  if (here_.empty()) here_.resize(size_t(comm.size())), here_[size_t(comm.rank())] = true;
  if (!here_[size_t(r)]) here_[size_t(r)] = comm.poll(r, tag_, round_).has_value();
  return here_[size_t(r)];
}

}  // namespace skein::optim
