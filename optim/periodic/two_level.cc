// Two levels of all-reduce, chained while others are still to begin.
#include "optim/periodic/two_level.h"

#include <algorithm>

#include "engine/vectors/vec.h"
#include "engine/words/number.h"

namespace skein::optim {
namespace {

using comm::Rank;

// In rank order, nodes in the order of their first ranks.
std::vector<std::vector<Rank>> nodes_of(comm::Communicator& c, const Nodes& nodes) {
  std::vector<std::vector<Rank>> all;
  std::vector<int64_t> names;
  for (Rank r = 0; r < c.size(); ++r) {
    int64_t name = nodes.kind == Nodes::kHost ? c.transport().host(c.world_rank(r)) : r / nodes.ranks;
    if (name < 0) name = -1 - r;  // a node of its own
    const size_t at = size_t(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size()) names.push_back(name), all.emplace_back();
    all[at].push_back(r);
  }
  return all;
}

}  // namespace

Nodes parse_hierarchy(const std::string& word) {
  if (word == "none") return {};
  if (word == "host") return {Nodes::kHost, 0};
  const int64_t n = number_in<int64_t>(word).value_or(0);
  if (n < 1)
    throw BadOption("--hierarchy " + word +
                    ": allowed are none, host (the ranks of a host form a node), or the number of ranks in a "
                    "node, 1 or more");
  return {Nodes::kRanks, n};
}

TwoLevelSum::TwoLevelSum(comm::Communicator& c, const Nodes& nodes) {
  std::vector<Rank> heads, mine;
  for (const std::vector<Rank>& node : nodes_of(c, nodes)) {
    heads.push_back(node[0]);
    if (std::find(node.begin(), node.end(), c.rank()) != node.end()) mine = node;
  }
  head_ = mine[0] == c.rank();
  const std::vector<Rank> self = {c.rank()};
  up_ = c.group(mine);
  down_ = c.group(heads.size() > 1 ? mine : self);
  across_ = c.group(head_ ? heads : self);
}

void TwoLevelSum::begin(const Tensor& x) {
  sums_.push_back({x, {}});
  enter(0, sums_.back());
  advance(false);
}

void TwoLevelSum::wait() {
  advance(true);
  sums_.clear();
  for (size_t& d : done_) d = 0;
}

// Each level is a communicator of its own and takes the sums in the order they were begun, so that all its
// members call the same collectives in the same order however their timing differs.
void TwoLevelSum::advance(bool wait) {
  for (int level = 0; level < 3; ++level)
    for (const size_t end = level == 0 ? sums_.size() : done_[level - 1]; done_[level] < end;
         ++done_[level]) {
      Sum& s = sums_[done_[level]];
      if (wait)
        s.level[level].wait();
      else if (!s.level[level].done())
        break;
      if (level < 2) enter(level + 1, s);
    }
}

// Down is a sum as well: what the head has, and zeros.
void TwoLevelSum::enter(int level, Sum& s) {
  comm::Communicator& c = level == 0 ? *up_ : level == 1 ? *across_ : *down_;
  if (level == 2 && !head_ && c.size() > 1) fill(s.x, 0.f);
  s.level[level] = c.all_reduce(s.x);
}

}  // namespace skein::optim
