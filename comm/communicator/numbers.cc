// Every loop is written once for both types.
#include "comm/communicator/numbers.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/loops/shares.h"
#include "engine/vectors/vec.h"

namespace skein::comm {
namespace {

constexpr int64_t kReducedByTeamFrom = 1 << 14;  // elements; a shorter loop is not worth waking a team

// y[i] <- f(y[i], x[i]), in the numbers' own type.
template <class F>
void each(const Tensor& y, const Tensor& x, F f) {
  CHECK(y.dtype() == x.dtype() && y.size() == x.size(), y.dtype(), y.shape(), x.dtype(), x.shape());
  visit_numbers(y, [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    const T* from = static_cast<const T*>(x.raw());
    in_shares(y.size(), y.size() > kReducedByTeamFrom, [=](int64_t i, int64_t last) {
#pragma omp simd
      for (int64_t j = i; j < last; ++j) to[j] = f(to[j], from[j]);
    });
  });
}

}  // namespace

Tensor bits_of(const std::vector<double>& numbers) {
  const Tensor t({int64_t(numbers.size())}, kI64);
  if (!numbers.empty()) std::memcpy(t.raw(), numbers.data(), size_t(t.bytes()));
  return t;
}

std::vector<double> numbers_of(const Tensor& bits) {
  std::vector<double> numbers(static_cast<size_t>(bits.size()));
  if (!numbers.empty()) std::memcpy(numbers.data(), bits.raw(), size_t(bits.bytes()));
  return numbers;
}

std::vector<std::vector<double>> rows_of(const std::vector<double>& all, size_t rows) {
  CHECK(all.size() % rows == 0, all.size(), rows);
  const auto each = std::ptrdiff_t(all.size() / rows);
  std::vector<std::vector<double>> table;
  for (auto row = all.begin(); table.size() < rows; row += each) table.emplace_back(row, row + each);
  return table;
}

void multiply(const Tensor& x, double a) { multiplied(x, a, x); }

void multiplied(const Tensor& y, double a, const Tensor& x) {
  if (!holds_doubles(x)) return scaled_copy(y, a, x);
  each(y, x, [a](double, double v) { return a * v; });
}

void add_to(const Tensor& y, const Tensor& x) {
  if (!holds_doubles(y)) return axpy(y, 1.f, x);
  each(y, x, [](double a, double b) { return a + b; });
}

void average_into(const Tensor& y, const Tensor& x) {
  each(y, x, [](auto a, auto b) { return decltype(a)(0.5) * (a + b); });
}

void absolute(const Tensor& y, const Tensor& x) {
  each(y, x, [](auto, auto v) { return std::abs(v); });
}

double sum_of(const Tensor& x) {
  return visit_numbers(x, [n = x.size()](const auto* v) {
    double sum = 0;
#pragma omp parallel for reduction(+ : sum) if (n > kReducedByTeamFrom)
    for (int64_t i = 0; i < n; ++i) sum += double(v[i]);
    return sum;
  });
}

double largest_of(const Tensor& x) {
  return visit_numbers(x, [n = x.size()](const auto* v) {
    double largest = 0;
#pragma omp parallel for reduction(max : largest) if (n > kReducedByTeamFrom)
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(double(v[i])));
    return largest;
  });
}

std::pair<double, const char*> precision_of(const Tensor& x) {
  if (holds_doubles(x)) return {DBL_EPSILON, "float64"};
  return {FLT_EPSILON, "float32"};
}

// Squares of doubles may be too large for a double.
Distance distance(const Tensor& x, double w, const Tensor& mean, const Tensor& size) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return visit_numbers(x, [&](const auto* v) -> Distance {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(v)>>;
    using Wide = std::conditional_t<std::is_same_v<T, double>, long double, double>;
    const T* m = static_cast<const T*>(mean.raw());
    const T* s = size ? static_cast<const T*>(size.raw()) : nullptr;
    const int64_t n = x.size();
    double worst = 0, relative = 0;
    Wide squares = 0;
#pragma omp parallel for reduction(max : worst, relative) reduction(+ : squares) if (n > kReducedByTeamFrom)
    for (int64_t i = 0; i < n; ++i) {
      const double off = std::abs(double(v[i]) / w - double(m[i]));
      squares += Wide(off) * Wide(off);
      if (!(off <= worst)) worst = std::isnan(off) ? kInfinity : off;
      if (s && !(off <= 0))
        relative = std::max(relative, s[i] > 0 && off < kInfinity ? off / double(s[i]) : kInfinity);
    }
    return {worst, relative, double(std::sqrt(squares))};
  });
}

}  // namespace skein::comm
