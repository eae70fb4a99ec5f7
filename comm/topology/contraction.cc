// Products of sparse mixing matrices, and power iteration on their part that is not the mean.
#include "comm/topology/contraction.h"

#include <algorithm>
#include <cmath>

namespace skein::comm {
namespace {

constexpr double kExact = 1e-14;  // below it, a product of doubles equals the mean as closely as it can
constexpr int kMostIterations = 2000;

double length(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

void normalize(std::vector<double>& v) {
  const double l = length(v);
  for (double& x : v) x /= l;
}

}  // namespace

MixingProduct::MixingProduct(const Topology& graph)
    : graph_(graph),
      n_(graph.size()),
      product_(size_t(n_) * size_t(n_), 0.0),
      weights_(size_t(n_), 1.0),
      direction_(size_t(n_)) {
  for (int i = 0; i < n_; ++i) product_[size_t(i) * size_t(n_) + size_t(i)] = 1;
}

void MixingProduct::multiply() {
  std::vector<double> next(product_.size(), 0.0), weights(weights_.size());
  const auto add = [&](int to, double weight, int from) {
    const double* row = &product_[size_t(from) * size_t(n_)];
    double* sum = &next[size_t(to) * size_t(n_)];
    for (int j = 0; j < n_; ++j) sum[j] += weight * row[j];
    weights[size_t(to)] += weight * weights_[size_t(from)];
  };
  for (int i = 0; i < n_; ++i) {
    const Mix m = graph_.at(i, rounds_);
    add(i, m.self, i);
    for (const Edge& e : m.in) add(i, e.weight, e.peer);
  }
  product_.swap(next);
  weights_.swap(weights);
  ++rounds_;
}

double MixingProduct::at(int i, int j) const {
  return product_[size_t(i) * size_t(n_) + size_t(j)] / weights_[size_t(i)] - 1.0 / n_;
}

void MixingProduct::apply(const std::vector<double>& v, std::vector<double>& out, bool transposed) const {
  std::fill(out.begin(), out.end(), 0.0);
  for (int i = 0; i < n_; ++i)
    for (int j = 0; j < n_; ++j)
      transposed ? out[size_t(j)] += at(i, j) * v[size_t(i)] : out[size_t(i)] += at(i, j) * v[size_t(j)];
}

double MixingProduct::factor() {
  // Begins near where the last one ended; not exactly there, because that direction may have vanished.
  std::vector<double>&v = direction_, image(v.size());
  for (size_t i = 0; i < v.size(); ++i) v[i] += 0.1 * std::sin(1.0 + 2.3 * double(i) + 0.7 * double(i * i));
  normalize(v);
  double factor = 0;
  for (int k = 0; k < kMostIterations; ++k) {
    apply(v, image, false);
    const double last = factor;
    factor = length(image);
    if (factor < kExact) return 0;
    if (std::abs(factor - last) < 1e-13 * factor) break;
    apply(image, v, true);
    normalize(v);
  }
  return factor;
}

std::vector<double> contraction_curve(const Topology& graph, int64_t rounds) {
  MixingProduct product(graph);
  std::vector<double> factors = {product.factor()};
  while (product.rounds() < rounds) {
    product.multiply();
    factors.push_back(factors.back() == 0 ? 0 : product.factor());
  }
  return factors;
}

}  // namespace skein::comm
