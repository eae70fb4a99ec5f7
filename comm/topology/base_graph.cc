// The base-(k+1) graph: at most k peers per gossip, the exact mean after one cycle at any n.
// After Takezawa et al., NeurIPS 2023; write n = sum_l a_l (k+1)^{p_l} with p_1 > p_2 > ...
#include <algorithm>

#include "comm/topology/graphs.h"

namespace skein::comm {
namespace {

// The fewest factors <= cap whose product is m, largest first; none if a prime factor is larger.
bool factors_of(int m, int cap, std::vector<int>& best) {
  if (m == 1) return best.clear(), true;
  bool found = false;
  for (int f = std::min(m, cap); f >= 2; --f) {
    std::vector<int> rest;
    if (m % f != 0 || !factors_of(m / f, cap, rest)) continue;
    if (!found || rest.size() + 1 < best.size()) {
      rest.insert(rest.begin(), f);
      best = rest;
    }
    found = true;
  }
  return found;
}

// V_l: `blocks` blocks of `block` consecutive ranks from `first` on; `radices` average all of it,
// `inner` one block.
struct Part {
  int first = 0, blocks = 0, block = 0;
  std::vector<int> radices, inner;
  int size() const { return blocks * block; }
  int end() const { return first + size(); }
};

class BaseGraph final : public Topology {
 public:
  BaseGraph(int n, int k) : Topology(n), plan_(n) {
    std::vector<int> all;
    if (factors_of(n, k + 1, all)) {
      for (int round = 0; round < int(all.size()); ++round) mix_digit(0, n, all, round, round);
    } else {
      build(parts_of(n, k + 1));
    }
    for (std::vector<Mix>& rounds : plan_) rounds.resize(size_t(rounds_));
  }
  Mix at(Rank r, int64_t q) const override { return plan_[r][size_t(q % rounds_)]; }
  int64_t cycle() const override { return rounds_; }

 private:
  static std::vector<Part> parts_of(int n, int base) {
    std::vector<Part> parts;
    int block = 1;
    while (n / block >= base) block *= base;
    for (int first = 0; first < n; block /= base) {
      Part v{first, (n - first) / block, block, {}, {}};
      if (v.blocks == 0) continue;
      factors_of(v.size(), base, v.radices);
      factors_of(v.block, base, v.inner);
      first = v.end();
      parts.push_back(v);
    }
    return parts;
  }

  void build(const std::vector<Part>& parts) {
    int d = 0;  // (1) every V_l averages itself
    for (const Part& v : parts) {
      for (int i = 0; i < int(v.radices.size()); ++i) mix_digit(v.first, v.size(), v.radices, i, i);
      d = std::max(d, int(v.radices.size()));
    }
    for (int l = 0; l + 1 < int(parts.size()); ++l) {
      const Part& v = parts[l];
      for (Rank r = v.end(); r < size(); ++r)  // (2) the ranks behind V_l exchange with it
        for (int b = 0; b < v.blocks; ++b)
          join(r, v.first + b * v.block + (r - v.end()), d + l, double(v.block) / (size() - v.first));
      for (int b = 0; b < v.blocks; ++b)  // (3) each block of V_l spreads what it received
        for (int i = 0; i < int(v.inner.size()); ++i)
          mix_digit(v.first + b * v.block, v.block, v.inner, i, d + l + 1 + i);
    }
  }

  // Ranks [first, first + size) in groups that differ in one digit of their index, weight 1/radix each.
  void mix_digit(int first, int size, const std::vector<int>& radices, int digit, int round) {
    int stride = 1;
    for (int i = 0; i < digit; ++i) stride *= radices[i];
    for (int a = 0; a < size; ++a)
      for (int step = 1; step < radices[digit]; ++step) {
        const int own = a / stride % radices[digit], other = (own + step) % radices[digit];
        if (other > own) join(first + a, first + a + (other - own) * stride, round, 1.0 / radices[digit]);
      }
  }

  void join(Rank a, Rank b, int round, double weight) {
    give(a, b, round, weight);
    give(b, a, round, weight);
    rounds_ = std::max(rounds_, int64_t(round) + 1);
  }
  void give(Rank from, Rank to, int round, double weight) {
    if (int(plan_[from].size()) <= round) plan_[from].resize(size_t(round) + 1);
    Mix& m = plan_[from][size_t(round)];
    m.out.push_back({to, weight});
    m.in.push_back({to, weight});
    m.self -= weight;
  }

  std::vector<std::vector<Mix>> plan_;  // [rank][round]
  int64_t rounds_ = 1;
};

}  // namespace

std::unique_ptr<Topology> base_graph(const TopologyOptions& o, int n) {
  refuse_peers(o, "base", "--base K sets the most it uses per gossip");
  return std::make_unique<BaseGraph>(n, o.base);
}

}  // namespace skein::comm
