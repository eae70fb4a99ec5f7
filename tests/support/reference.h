// What the tests of the backend's kernels share: seeded inputs of every type, and how far results are from a
// reference in double.
#pragma once
#include <cstring>
#include <random>

#include "tests/support/numbers/difference.h"
#include "tests/support/testing.h"

namespace skein::testing {

using Numbers = std::vector<double>;

// Gaussian values rounded to the type, so that the reference sees exactly the same inputs.
inline Tensor gaussian(const Shape& s, DType t, unsigned seed, float offset = 0, float spread = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(offset, spread);
  Tensor x(s, t);
  visit_float(t, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < x.size(); ++i) x.data<T>()[i] = T(normal(generator));
  });
  return x;
}

// NaN in every element of any type: what must be written over, or be ignored.
inline void spoil(const Tensor& t) {
  if (t) std::memset(t.raw(), 0xFF, size_t(t.bytes()));
}

inline Numbers numbers(const Tensor& t) { return t ? values(t) : Numbers(); }

inline double error(const Tensor& t, const Numbers& want) {
  return differences::relative_difference(numbers(t), want);
}

// f32 results lose a few rounding steps; 16-bit ones are stored with 8 or 11 bits and their largest is some 5
// rms: twice 5 / 2^8, rounded up, and an eighth of that for f16.
inline double bound(DType t) { return t == kF32 ? 3e-5 : t == kF16 ? 5e-3 : 4e-2; }

}  // namespace skein::testing
