// The graphs: their matrices, what they promise of the exact mean, and what they refuse.
#include "comm/topology/topology.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/numbers/matrices.h"

namespace skein::comm {
namespace {

std::vector<Rank> out_of(const Topology& t, Rank r, int64_t q) {
  std::vector<Rank> p;
  for (const Edge& e : t.at(r, q).out) p.push_back(e.peer);
  return p;
}

// Every graph that needs no file, in every world and with every number of peers it allows.
template <class F>
void for_each_graph(int largest, F&& f) {
  for (const TopologyRow& row : topologies()) {
    if (std::string(row.name) == "file") continue;
    for (int n = 1; n <= largest; n += row.even && n > 1 ? 2 : 1)
      if (!row.even || n == 1 || n % 2 == 0)
        for (int p = 0; p < std::max(2, n); ++p) {
          std::unique_ptr<Topology> t;
          try {
            t = make_topology(row.name, peers(p), n);
          } catch (const BadOption&) { continue; }
          SCOPED_TRACE(text(row.name, " n=", n, " p=", p));
          f(*t, row);
        }
  }
}

TEST(Topology, OutAndInAgreeAndNobodyIsItsOwnPeer) {
  int graphs = 0;
  for_each_graph(17, [&](const Topology& t, const TopologyRow&) {
    ++graphs;
    for (int64_t q = 0; q < std::max<int64_t>(t.cycle(), 5); ++q) {
      std::vector<std::multiset<std::pair<Rank, double>>> told(t.size()), heard(t.size());
      for (Rank r = 0; r < t.size(); ++r) {
        const Mix m = t.at(r, q);
        std::set<Rank> out, in;
        for (const Edge& e : m.out) out.insert(e.peer), told[e.peer].insert({r, e.weight});
        for (const Edge& e : m.in) in.insert(e.peer), heard[r].insert({e.peer, e.weight});
        ASSERT_EQ(out.size(), m.out.size());
        ASSERT_EQ(in.size(), m.in.size());
        ASSERT_FALSE(out.contains(r));
      }
      ASSERT_EQ(told, heard);
    }
  });
  EXPECT_GT(graphs, 500);
}

TEST(Topology, ColumnsAndRowsSumToOne) {
  for_each_graph(17, [](const Topology& t, const TopologyRow&) {
    for (int64_t q = 0; q < std::max<int64_t>(t.cycle(), 5); ++q) {
      const Matrix w = matrix(t, q);
      for (int i = 0; i < t.size(); ++i) {
        double row = 0, column = 0;
        for (int j = 0; j < t.size(); ++j) row += w[i][j], column += w[j][i];
        ASSERT_NEAR(row, 1, 1e-12);
        ASSERT_NEAR(column, 1, 1e-12);
      }
    }
  });
}

TEST(Topology, EveryGraphReachesTheMean) {
  for_each_graph(9, [](const Topology& t, const TopologyRow& row) {
    // A book of even length read in twos may leave directed rings, which still mix.
    EXPECT_LT(off_the_mean(t, 400), 1e-6) << row.name;
  });
}

TEST(Topology, CycleRepeats) {
  for_each_graph(12, [](const Topology& t, const TopologyRow&) {
    for (int64_t q = 0; q < t.cycle(); ++q) ASSERT_EQ(matrix(t, q), matrix(t, q + t.cycle()));
  });
}

TEST(Topology, ExponentialIsExactAtPowersOfPeersPlusOne) {
  for (int p = 1; p <= 4; ++p)
    for (int n = p + 1, gossips = 1; n <= 130; n *= p + 1, ++gossips) {
      const auto t = make_topology("exponential", peers(p), n);
      EXPECT_LT(off_the_mean(*t, gossips), 1e-12) << n << ' ' << p;
      if (gossips > 1) { EXPECT_GT(off_the_mean(*t, gossips - 1), 1e-3); }
    }
}

TEST(Topology, ExponentialSkipsDistancesThatDoNotFit) {
  const auto t = make_topology("exponential", peers(2), 8);  // distances 1 2 3 6
  EXPECT_EQ(t->cycle(), 2);
  EXPECT_EQ(out_of(*t, 0, 0), (std::vector<Rank>{1, 2}));
  EXPECT_EQ(out_of(*t, 0, 1), (std::vector<Rank>{3, 6}));
  EXPECT_EQ(out_of(*t, 5, 3), (std::vector<Rank>{0, 3}));
}

TEST(Topology, ARingWithOnePeerStandsStillUnlessAskedToTakeTurns) {
  TopologyOptions turns = peers(1);
  turns.in_turn = true;
  for (int n = 2; n <= 9; ++n) {
    const auto still = make_topology("ring", peers(1), n), turning = make_topology("ring", turns, n);
    EXPECT_EQ(still->cycle(), 1);
    for (Rank r = 0; r < n; ++r)
      for (int64_t q = 0; q < 7; ++q) {
        const Rank next = (r + 1) % n, previous = (r + n - 1) % n;
        EXPECT_EQ(out_of(*still, r, q), std::vector<Rank>{next}) << n << ' ' << q;
        EXPECT_EQ(still->at(r, q).in, (std::vector<Edge>{{previous, 0.5}})) << n << ' ' << q;
        EXPECT_EQ(out_of(*turning, r, q), std::vector<Rank>{q % 2 ? previous : next}) << n << ' ' << q;
      }
  }
}

TEST(Topology, BipartiteExponentialIsExactAfterTwoThreeFive) {
  for (auto [n, gossips] : {std::pair{4, 2}, {8, 3}, {16, 5}}) {
    const auto t = make_topology("bipartite-exponential", peers(1), n);
    EXPECT_LT(off_the_mean(*t, gossips), 1e-12) << n;
    EXPECT_GT(off_the_mean(*t, gossips - 1), 1e-3) << n;
  }
}

TEST(Topology, BipartiteGraphsMakeTruePairs) {
  for (const char* name : {"bipartite-exponential", "bipartite-linear"})
    for (int n = 2; n <= 16; n += 2) {
      const auto t = make_topology(name, peers(1), n);
      for (int64_t q = 0; q < t->cycle(); ++q)
        for (Rank r = 0; r < n; ++r) {
          const Rank partner = out_of(*t, r, q)[0];
          EXPECT_EQ(out_of(*t, partner, q)[0], r);
          EXPECT_NE(partner % 2, r % 2);
        }
    }
}

TEST(Topology, OnlyUndirectedGraphsAreSymmetric) {
  EXPECT_TRUE(make_topology("ring", peers(2), 5)->symmetric());
  EXPECT_FALSE(make_topology("ring", peers(1), 5)->symmetric());
  EXPECT_TRUE(make_topology("ring", peers(1), 2)->symmetric());
  EXPECT_FALSE(make_topology("exponential", peers(1), 8)->symmetric());
  EXPECT_TRUE(make_topology("complete", {}, 6)->symmetric());
  EXPECT_TRUE(make_topology("bipartite-linear", peers(1), 6)->symmetric());
  EXPECT_TRUE(make_topology("random", peers(3), 7)->symmetric());
}

TEST(Topology, RotatingTheRanksRotatesTheGraph) {
  for_each_graph(12, [](const Topology& t, const TopologyRow& row) {
    const std::string name = row.name;
    if (name == "base" || name == "random") return;
    const int n = t.size(), by = row.even ? 2 : 1;
    for (int64_t q = 0; q < t.cycle(); ++q)
      for (Rank r = 0; r < n; ++r) {
        const Mix here = t.at(r, q), there = t.at((r + by) % n, q);
        for (size_t i = 0; i < here.out.size(); ++i) {
          ASSERT_EQ((here.out[i].peer + by) % n, there.out[i].peer);
          ASSERT_EQ((here.in[i].peer + by) % n, there.in[i].peer);
        }
      }
  });
}

TEST(Topology, SmallWorlds) {
  for (const TopologyRow& row : topologies()) {
    const auto alone = make_topology(row.name, peers(3), 1);
    EXPECT_TRUE(alone->at(0, 7).out.empty());
    EXPECT_EQ(alone->at(0, 7).self, 1);
  }
  const auto pair = make_topology("ring", {.peers = 0, .default_peers = 2, .file = ""}, 2);
  EXPECT_EQ(out_of(*pair, 0, 3), std::vector<Rank>{1});
  EXPECT_EQ(pair->at(1, 0).self, 0.5);
}

TEST(Topology, RefusesWhatCannotHold) {
  EXPECT_NE(refusal("expnential", {}, 4).find("did you mean exponential"), std::string::npos);
  EXPECT_NE(refusal("bipartite-exponential", {}, 5).find("even number of workers, not 5"), std::string::npos);
  EXPECT_NE(refusal("exponential", peers(4), 4).find("offers 3 with 4 workers"), std::string::npos);
  EXPECT_NE(refusal("ring", peers(3), 8).find("offers 2"), std::string::npos);
  EXPECT_NE(refusal("complete", peers(2), 8).find("7 peers"), std::string::npos);
  EXPECT_NE(refusal("base", peers(2), 8).find("--base"), std::string::npos);
  EXPECT_NE(refusal("file", {}, 4).find("file:PATH"), std::string::npos);
  EXPECT_NE(refusal("ring:x", {}, 4).find("only file takes a path"), std::string::npos);
  EXPECT_EQ(refusal("bidirectional_exponential", peers(2), 8), "");
}

}  // namespace
}  // namespace skein::comm
