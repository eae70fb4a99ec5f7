// The mixing matrices of graphs, for tests of topologies.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "comm/topology/topology.h"
#include "tests/support/numbers/difference.h"

namespace skein::comm {

using Matrix = std::vector<std::vector<double>>;

inline Matrix identity(int n) {
  Matrix m(n, std::vector<double>(n, 0));
  for (int i = 0; i < n; ++i) m[i][i] = 1;
  return m;
}

// W[to][from] of gossip q, built from what each rank gives.
inline Matrix matrix(const Topology& t, int64_t q) {
  Matrix w(t.size(), std::vector<double>(t.size(), 0));
  for (Rank r = 0; r < t.size(); ++r) {
    const Mix m = t.at(r, q);
    w[r][r] += m.self;
    for (const Edge& e : m.out) w[e.peer][r] += e.weight;
  }
  return w;
}

inline Matrix times(const Matrix& a, const Matrix& b) {
  const int n = int(a.size());
  Matrix c(n, std::vector<double>(n, 0));
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k) c[i][j] += a[i][k] * b[k][j];
  return c;
}

// The largest deviation of W(q-1) ... W(0) from the matrix that takes the mean.
inline double off_the_mean(const Topology& t, int64_t gossips) {
  Matrix p = identity(t.size());
  for (int64_t q = 0; q < gossips; ++q) p = times(matrix(t, q), p);
  double worst = 0;
  for (const auto& row : p)
    for (double v : row) worst = differences::worse(worst, std::abs(v - 1.0 / t.size()));
  return worst;
}

inline TopologyOptions peers(int p) {
  TopologyOptions o;
  o.peers = p;
  return o;
}

// The message with which a graph is refused; empty if it is not.
inline std::string refusal(const std::string& spec, const TopologyOptions& o, int n) {
  try {
    make_topology(spec, o, n);
  } catch (const Error& e) { return e.what(); }
  return "";
}

}  // namespace skein::comm
