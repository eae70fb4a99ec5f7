// How far numbers are from those wanted, for tests to bound. What is not a number is infinitely far: std::max
// passes over a NaN, or over all that came before it.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace skein::differences {

inline double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? HUGE_VAL : std::max(a, b); }

// Of two vectors' elements; infinite where one has more of them.
template <class A, class B>
double largest_difference(const A& a, const B& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = worse(worst, std::abs(double(a[i]) - double(b[i])));
  return worst;
}

// The same relative to the wanted numbers' root mean square (at least 1e-3: they may be zero).
inline double relative_difference(const std::vector<double>& got, const std::vector<double>& want) {
  double square = 0;
  for (const double x : want) square += x * x;
  return largest_difference(got, want) / std::max(1e-3, std::sqrt(square / double(want.size())));
}

}  // namespace skein::differences
