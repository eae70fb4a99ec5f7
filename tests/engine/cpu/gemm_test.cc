// Matrix products of the backend against the sum of products in double, for every type and transposition.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "engine/backend.h"
#include "tests/support/reference.h"

namespace skein {
namespace {
using namespace testing;

Numbers reference_gemm(const GemmArgs& g, const Numbers& y0) {
  const Numbers a = numbers(g.a), b = numbers(g.b), bias = numbers(g.bias);
  const int64_t m = g.y.dim(0), n = g.y.dim(1), k = g.a.dim(g.ta ? 0 : 1);
  Numbers y(size_t(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double s = g.beta == 0 ? 0 : g.beta * y0[size_t(i * n + j)];
      for (int64_t l = 0; l < k; ++l)
        s += a[size_t(g.ta ? l * m + i : i * k + l)] * b[size_t(g.tb ? j * k + l : l * n + j)];
      y[size_t(i * n + j)] = s + (bias.empty() ? 0 : bias[size_t(j)]);
    }
  return y;
}

TEST(Gemm, EqualsTheSumOfProductsForEveryTypeAndTransposition) {
  const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {17, 1, 33}, {64, 10, 128}, {33, 65, 31}};
  for (auto [m, n, k] : sizes)
    for (int bits = 0; bits < 128; ++bits)
      for (DType half : {kBF16, kF16}) {
        if (half == kF16 && bits < 16) continue;
        const bool ta = bits & 1, tb = bits & 2, bias = bits & 4, sum = bits & 8;
        const DType a = bits & 16 ? half : kF32, b = bits & 32 ? half : kF32, y = bits & 64 ? half : kF32;
        GemmArgs g{.y = gaussian({m, n}, y, 1),
                   .a = gaussian(ta ? Shape{k, m} : Shape{m, k}, a, 2),
                   .b = gaussian(tb ? Shape{n, k} : Shape{k, n}, b, 3),
                   .ta = ta,
                   .tb = tb,
                   .beta = sum ? 0.5f : 0};
        if (bias) g.bias = gaussian({n}, kF32, 4);
        const Numbers want = reference_gemm(g, numbers(g.y));
        gemm(kCpu, g);
        EXPECT_LT(error(g.y, want), bound(bits < 16 ? kF32 : half))
            << half << ' ' << m << ' ' << n << ' ' << k << " bits " << bits;
      }
}

TEST(Gemm, RepeatsItselfBitForBitForOneNumberOfThreads) {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 3})
    for (const DType t : {kF32, kBF16, kF16}) {
      omp_set_num_threads(threads);
      GemmArgs g{.y = Tensor({65, 70}, t), .a = gaussian({65, 900}, t, 1), .b = gaussian({900, 70}, t, 2)};
      gemm(kCpu, g);
      const Numbers first = numbers(g.y);
      spoil(g.y), gemm(kCpu, g);
      EXPECT_EQ(numbers(g.y), first) << t << ", " << threads << " threads";
    }
  omp_set_num_threads(before);
}

TEST(Gemm, OfTwoKindsOf16BitsLosesNeithersBits) {
  GemmArgs g{.y = Tensor({9, 11}), .a = gaussian({9, 40}, kF16, 1), .b = gaussian({40, 11}, kBF16, 2)};
  const Numbers want = reference_gemm(g, numbers(g.y));
  gemm(kCpu, g);
  EXPECT_LT(error(g.y, want), bound(kF32));
}

TEST(Gemm, DoesNotReadTheResultWhenBetaIsZero) {
  GemmArgs g{.y = Tensor({2, 2}), .a = gaussian({2, 3}, kF32, 1), .b = gaussian({3, 2}, kF32, 2)};
  for (int i = 0; i < 4; ++i) g.y.data<float>()[i] = NAN;
  gemm(kCpu, g);
  for (double v : numbers(g.y)) EXPECT_TRUE(std::isfinite(v));
}

TEST(Gemm, RefusesShapesThatDoNotMeet) {
  EXPECT_THROW(gemm(kCpu, {.y = Tensor({2, 2}), .a = Tensor({2, 3}), .b = Tensor({4, 2})}), Error);
}

}  // namespace
}  // namespace skein
