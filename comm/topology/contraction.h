// Contraction: how fast a graph brings vectors to their mean, in theory. A pure function of
// the mixing matrices.
#pragma once
#include <vector>

#include "comm/topology/topology.h"

namespace skein::comm {

// After gossips 0 ... q-1 the product of the matrices is P = W(q-1) ... W(0), the push-sum weights are w = P
// 1, and rank i's estimate is row i of diag(1/w) P applied to the start. The distance of all ranks together
// from the mean is at most |diag(1/w) P - 11'/n| times what it was: a largest singular value, found by power
// iteration. If W is doubly stochastic, this is the second largest singular value of P.
class MixingProduct {
 public:
  explicit MixingProduct(const Topology&);
  void multiply();  // by the next gossip's matrix
  int64_t rounds() const { return rounds_; }
  // The factor of the product so far: at most this share of a distance from the mean is left. 1 before the
  // first gossip (0 in a world of one), 0 when the mean is exact.
  double factor();

 private:
  double at(int i, int j) const;
  void apply(const std::vector<double>& v, std::vector<double>& out, bool transposed) const;

  const Topology& graph_;
  const int n_;
  int64_t rounds_ = 0;
  std::vector<double> product_, weights_;  // P by rows, w
  std::vector<double> direction_;          // the end of the last power iteration, and the start of the next
};

// The factor after each of 0 ... rounds gossips.
std::vector<double> contraction_curve(const Topology&, int64_t rounds);

}  // namespace skein::comm
