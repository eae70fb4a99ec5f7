// Random matchings: for each gossip, p rounds of a round-robin tournament among randomly drawn seats.
#include <numeric>

#include "comm/topology/graphs.h"
#include "engine/random.h"

namespace skein::comm {
namespace {

// Fisher-Yates on words [at, at + n) of the draw.
std::vector<int> permutation(int n, const Draw& draw, uint64_t at) {
  std::vector<int> p(n);
  std::iota(p.begin(), p.end(), 0);
  for (int i = n - 1; i > 0; --i) std::swap(p[i], p[(uint64_t(draw.bits(at + i)) * uint64_t(i + 1)) >> 32]);
  return p;
}

class RandomMatchings final : public Topology {
 public:
  RandomMatchings(const TopologyOptions& o, int n)
      : Topology(n), peers_(chosen_peers(o, n - 1, "random", n)), seed_(o.seed), epoch_(o.epoch) {}

  // Any two rounds of the circle method (an even number of seats, the last of which stays put) are
  // edge-disjoint. In an odd world one seat is empty, and the rank that meets it idles.
  Mix at(Rank r, int64_t q) const override {
    const int n = size(), seats = n + n % 2, rounds = seats - 1;
    const Draw draw{seed_, Purpose::kGraph, uint64_t(q), uint32_t(epoch_)};
    const std::vector<int> rank_at = permutation(n, draw, 0), round = permutation(rounds, draw, uint64_t(n));
    int seat = 0;
    while (rank_at[seat] != r) ++seat;
    Mix m;
    for (int j = 0; j < peers_; ++j) {
      const int other = opponent(seat, round[j], rounds);
      if (other < n) m.out.push_back({rank_at[other], 1.0 / (peers_ + 1)});
    }
    m.in = m.out;
    m.self = 1.0 - double(m.out.size()) / (peers_ + 1);
    return m;
  }

  int64_t cycle() const override { return 0; }
  bool symmetric() const override { return true; }
  int peers() const override { return peers_; }

 private:
  // In round t seats a and b below `rounds` meet where a + b = 2t (mod rounds); the last seat meets t.
  static int opponent(int seat, int t, int rounds) {
    if (seat == rounds) return t;
    const int other = ((2 * t - seat) % rounds + rounds) % rounds;
    return other == seat ? rounds : other;
  }

  int peers_;
  uint64_t seed_;
  int64_t epoch_;
};

}  // namespace

std::unique_ptr<Topology> random_matchings(const TopologyOptions& o, int n) {
  return std::make_unique<RandomMatchings>(o, n);
}

}  // namespace skein::comm
