// Contraction in theory: graphs whose singular values are known, and vectors that really are averaged.
#include "comm/topology/contraction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/random.h"
#include "tests/support/files.h"

namespace skein::comm {
namespace {

std::unique_ptr<Topology> graph(const std::string& name, int n, int peers = 0, uint64_t seed = 1) {
  TopologyOptions o;
  o.peers = peers, o.seed = seed;
  return make_topology(name, o, n);
}

TEST(Contraction, OfKnownGraphsIsTheSecondSingularValue) {
  const double pi = std::acos(-1.0);
  const auto of_one_gossip = [](const Topology& g) { return contraction_curve(g, 1)[1]; };
  for (int n : {3, 4, 5, 8, 17}) {
    EXPECT_NEAR(of_one_gossip(*graph("ring", n, 1)), std::cos(pi / n), 1e-9) << n;  // (I + S) / 2
    EXPECT_NEAR(of_one_gossip(*graph("ring", n, 2)), std::abs(1 + 2 * std::cos(2 * pi / n)) / 3, 1e-9) << n;
    EXPECT_EQ(of_one_gossip(*graph("complete", n)), 0) << n;
  }
}

TEST(Contraction, IsExactWhereTheGraphIs) {
  const auto four = contraction_curve(*graph("exponential", 4, 1), 4);
  EXPECT_NEAR(four[0], 1, 1e-12);
  EXPECT_NEAR(four[1], std::sqrt(0.5), 1e-9);
  EXPECT_EQ(four[2], 0);  // the mean, after log2(n) gossips
  EXPECT_EQ(four[4], 0);
  for (int n : {5, 6, 7, 12}) {
    const auto base = graph("base", n);
    const auto curve = contraction_curve(*base, base->cycle());
    EXPECT_EQ(curve.back(), 0) << n;
    EXPECT_GT(curve[size_t(base->cycle() - 1)], 0) << n;
  }
}

TEST(Contraction, AWorldOfOneIsItsOwnMean) { EXPECT_EQ(contraction_curve(*graph("ring", 1), 2)[0], 0); }

// Gossips `rounds` times in double; the ratio of distances from the mean.
double measured(const Topology& g, int64_t rounds, uint32_t draw) {
  const size_t n = size_t(g.size());
  std::vector<double> x(n), w(n, 1.0);
  double mean = 0;
  for (size_t i = 0; i < n; ++i) mean += (x[i] = Draw{3, Purpose::kTest, draw, 0}.unit(i) - 0.5) / double(n);
  const auto distance = [&] {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += (x[i] / w[i] - mean) * (x[i] / w[i] - mean);
    return std::sqrt(sum);
  };
  const double before = distance();
  for (int64_t q = 0; q < rounds; ++q) {
    std::vector<double> y(n, 0.0), v(n, 0.0);
    for (size_t j = 0; j < n; ++j) {
      const Mix m = g.at(int(j), q);
      y[j] += m.self * x[j], v[j] += m.self * w[j];
      for (const Edge& e : m.out) y[size_t(e.peer)] += e.weight * x[j], v[size_t(e.peer)] += e.weight * w[j];
    }
    x = y, w = v;
  }
  return distance() / before;
}

TEST(Contraction, IsABoundThatSomeVectorComesNear) {
  for (const char* name : {"ring", "exponential", "bidirectional-exponential", "linear", "random"}) {
    const auto g = graph(name, 6);
    const auto curve = contraction_curve(*g, 9);
    for (int64_t q : {1, 2, 5, 9}) {
      double worst = 0;
      for (uint32_t draw = 0; draw < 400; ++draw) worst = std::max(worst, measured(*g, q, draw));
      EXPECT_LE(worst, curve[size_t(q)] + 1e-12) << name << q;
      EXPECT_GE(worst, 0.8 * curve[size_t(q)]) << name << q;
    }
  }
}

TEST(Contraction, HoldsForGraphsThatAreOnlyColumnStochastic) {
  const testing::ScratchDir dir;
  std::ofstream(dir / "g.json")
      << R"({"n": 3, "rounds": [{"edges": [[0,0,0.5],[0,1,0.25],[0,2,0.25],[1,1,0.9],[1,0,0.1],
      [2,2,0.6],[2,1,0.4]]}]})";
  const auto g = make_topology("file:" + (dir / "g.json"), {}, 3);
  const auto curve = contraction_curve(*g, 40);
  for (int64_t q : {1, 3, 10}) {
    double worst = 0;
    for (uint32_t draw = 0; draw < 400; ++draw) worst = std::max(worst, measured(*g, q, draw));
    EXPECT_LE(worst, curve[size_t(q)] + 1e-12) << q;
    EXPECT_GE(worst, 0.9 * curve[size_t(q)]) << q;
  }
  EXPECT_LT(curve[40], 1e-2);  // push-sum comes to the mean, although W is not doubly stochastic
}

}  // namespace
}  // namespace skein::comm
