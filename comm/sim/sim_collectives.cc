// Members of one collective find each other by its communicator and its number.
#include "comm/sim/sim_collectives.h"

#include "comm/sim/sim_transport.h"

namespace skein::comm::sim {

std::shared_ptr<const Collectives::Result> SimCollectives::begin(const Call& c, const Combine& combine) {
  const std::pair key(c.communicator, c.sequence);
  World::Gathering& g = round_->gatherings[key];
  const size_t n = size_t(c.group.size());
  if (g.brought.empty()) {
    g.first = c;
    g.brought.resize(n), g.bytes.resize(n), g.came.resize(n), g.results.resize(n);
  }
  if (c.kind != g.first.kind || c.root != g.first.root || c.layout != g.first.layout) disagree(g, c);
  const size_t me = size_t(c.me);
  g.brought[me] = c.x, g.bytes[me] = c.bytes, g.came[me] = world_.now();
  const auto result = g.results[me] = std::make_shared<Result>();
  // Who only gives to a root has nothing to wait for.
  result->there = c.kind == Collectives::Kind::kGather && c.me != c.root;
  if (++g.present < n) return result;
  const World::Gathering all = std::move(g);
  round_->gatherings.erase(key);
  complete(all, combine);
  return result;
}

// All members hear of it, as by the refusals of messages.
void SimCollectives::disagree(const World::Gathering& g, const Call& c) const {
  const Rank mine = c.group.at(c.me), first = g.first.group.at(g.first.me);
  const std::string why =
      text("rank ", mine, " and rank ", first, " disagree about collective ", c.sequence >> 24);
  const Message refusal = round_->boxes[size_t(mine)]->refusal(why);
  for (Rank r = 0; r < c.group.size(); ++r)
    if (const Rank world = c.group.at(r); world != mine) round_->boxes[size_t(world)]->put(refusal);
  throw Disagreement(why);
}

std::vector<double> SimCollectives::ends(const World::Gathering& g) const {
  const Call& c = g.first;
  std::unique_ptr<CollectiveTimes>& times = round_->times[c.communicator];
  if (!times) {
    std::vector<int> hosts;
    for (Rank r = 0; r < c.group.size(); ++r) {
      const int worker = int(round_->workers[size_t(c.group.at(r))]) - 1;
      hosts.push_back(world_.site_ ? world_.site_->host_of(worker) : worker);
    }
    times = std::make_unique<CollectiveTimes>(world_.site_ ? &*world_.site_ : nullptr,
                                              world_.network_.weather(), hosts);
  }
  const Draw draw{world_.network_.weather().seed, Purpose::kFault, uint64_t(c.sequence), ~c.communicator};
  const auto at_once = [&](double t) { return std::vector<double>(g.came.size(), t); };
  using What = Collectives::Kind;
  switch (c.kind) {
    case What::kSum:
      return at_once(times->sum(g.came, c.bytes, c.one_hop, draw));
    case What::kAllGather:
      return at_once(times->sum(g.came, c.bytes, true, draw));
    case What::kGather:
      return at_once(times->gather(g.came, g.bytes, c.root, draw));
    case What::kBroadcast:
      return times->broadcast(g.came, c.bytes, c.root, draw);
    case What::kBarrier:
      break;
  }
  return times->barrier(g.came, draw);
}

void SimCollectives::complete(const World::Gathering& g, const Combine& combine) const {
  const std::vector<double> ends = this->ends(g);
  const std::vector<Tensor> all = combine(g.brought);
  const Call& c = g.first;
  world_.note("collective ", c.communicator, '/', round_->epoch, " number ", c.sequence >> 24, " kind ",
              int(c.kind), " of ", c.group.size(), ", ", c.x.bytes(), " B");
  for (Rank r = 0; r < c.group.size(); ++r) {
    const auto result = g.results[size_t(r)];
    if (result->there) continue;
    result->all = all;
    const Rank rank = c.group.at(r);
    world_.at(ends[size_t(r)], [result, round = round_, rank, &baton = world_.baton_] {
      baton.hear(round->workers[size_t(rank)], [result, round, rank] {
        result->there = true;
        if (round->open[size_t(rank)]) round->boxes[size_t(rank)]->wake();
      });
    });
  }
}

}  // namespace skein::comm::sim
