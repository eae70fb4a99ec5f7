// Every primitive of engine/backend.h against a plain reference in double, over odd shapes and both types.
#include "engine/backend.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <random>
#include <thread>

#include "engine/cpu/direct_conv.h"
#include "engine/cpu/winograd.h"

namespace skein {
namespace {

using Values = std::vector<double>;

// Gaussian values rounded to the type, so that the reference sees exactly the same inputs.
Tensor random(const Shape& s, DType t, unsigned seed, float offset = 0) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(offset, 1);
  Tensor x(s, t);
  visit_float(t, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < x.size(); ++i) x.data<T>()[i] = T(normal(generator));
  });
  return x;
}

Values values(const Tensor& t) {
  Values v;
  if (!t) return v;
  visit_float(t.dtype(), [&](auto zero) {
    for (int64_t i = 0; i < t.size(); ++i) v.push_back(double(float(t.data<decltype(zero)>()[i])));
  });
  return v;
}

// Largest difference, relative to the reference's root mean square (at least 1e-3: references may be zero).
double error(const Tensor& t, const Values& want) {
  const Values got = values(t);
  EXPECT_EQ(got.size(), want.size());
  double square = 0, worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    square += want[i] * want[i];
    if (!(std::abs(got[i] - want[i]) <= worst)) worst = std::abs(got[i] - want[i]);
  }
  return worst / std::max(1e-3, std::sqrt(square / double(want.size())));
}

// f32 results lose a few rounding steps; 16-bit ones are stored with 8 or 11 bits and their largest is some 5
// rms: twice 5 / 2^8, rounded up, and an eighth of that for f16.
double bound(DType t) { return t == kF32 ? 3e-5 : t == kF16 ? 5e-3 : 4e-2; }

// ---- gemm ------------------------------------------------------------------------------------------

Values reference_gemm(const GemmArgs& g, const Values& y0) {
  const Values a = values(g.a), b = values(g.b), bias = values(g.bias);
  const int64_t m = g.y.dim(0), n = g.y.dim(1), k = g.a.dim(g.ta ? 0 : 1);
  Values y(size_t(m * n));
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
        GemmArgs g{.y = random({m, n}, y, 1),
                   .a = random(ta ? Shape{k, m} : Shape{m, k}, a, 2),
                   .b = random(tb ? Shape{n, k} : Shape{k, n}, b, 3),
                   .ta = ta,
                   .tb = tb,
                   .beta = sum ? 0.5f : 0};
        if (bias) g.bias = random({n}, kF32, 4);
        const Values want = reference_gemm(g, values(g.y));
        gemm(kCpu, g);
        EXPECT_LT(error(g.y, want), bound(bits < 16 ? kF32 : half))
            << half << ' ' << m << ' ' << n << ' ' << k << " bits " << bits;
      }
}

TEST(Gemm, OfTwoKindsOf16BitsLosesNeithersBits) {
  GemmArgs g{.y = Tensor({9, 11}), .a = random({9, 40}, kF16, 1), .b = random({40, 11}, kBF16, 2)};
  const Values want = reference_gemm(g, values(g.y));
  gemm(kCpu, g);
  EXPECT_LT(error(g.y, want), bound(kF32));
}

TEST(Gemm, DoesNotReadTheResultWhenBetaIsZero) {
  GemmArgs g{.y = Tensor({2, 2}), .a = random({2, 3}, kF32, 1), .b = random({3, 2}, kF32, 2)};
  for (int i = 0; i < 4; ++i) g.y.data<float>()[i] = NAN;
  gemm(kCpu, g);
  for (double v : values(g.y)) EXPECT_TRUE(std::isfinite(v));
}

TEST(Gemm, RefusesShapesThatDoNotMeet) {
  EXPECT_THROW(gemm(kCpu, {.y = Tensor({2, 2}), .a = Tensor({2, 3}), .b = Tensor({4, 2})}), Error);
}

// ---- convolution -----------------------------------------------------------------------------------

// Calls f(index of x, of w, of y) for every product of the convolution.
template <class F>
void each_product(const ConvArgs& c, F f) {
  const auto& g = c.geometry;
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), R = c.w.dim(1), S = c.w.dim(2),
                I = c.w.dim(3);
  const int64_t O = c.y.dim(3), per_group = O / g.groups;
  for (int64_t at = 0; at < c.y.size(); ++at) {
    const int64_t o = at % O, q = at / O % c.y.dim(2), p = at / O / c.y.dim(2) % c.y.dim(1);
    const int64_t n = at / O / c.y.dim(2) / c.y.dim(1);
    for (int64_t r = 0; r < R; ++r)
      for (int64_t s = 0; s < S; ++s)
        for (int64_t i = 0; i < I; ++i) {
          const int64_t h = p * g.stride - g.padding + r * g.dilation,
                        w = q * g.stride - g.padding + s * g.dilation;
          if (h < 0 || h >= H || w < 0 || w >= W) continue;
          f(size_t(((n * H + h) * W + w) * C + o / per_group * I + i), size_t(((o * R + r) * S + s) * I + i),
            size_t(at));
        }
  }
}

Values scaled(const Values& v, double beta) {
  Values y = v;
  for (double& x : y) x = beta == 0 ? 0 : x * beta;
  return y;
}

struct ConvCase {
  int64_t n, h, w, c, o, r, s;
  ConvGeometry geometry;
};

const ConvCase kConvCases[] = {
    {2, 9, 7, 3, 16, 3, 3, {1, 1, 1, 1}},   {2, 8, 8, 16, 16, 3, 3, {1, 1, 1, 1}},
    {1, 11, 9, 1, 5, 5, 5, {1, 0, 1, 1}},   {2, 9, 9, 5, 7, 3, 3, {2, 1, 1, 1}},
    {3, 15, 13, 3, 64, 7, 7, {2, 3, 1, 1}}, {2, 6, 6, 16, 32, 1, 1, {2, 0, 1, 1}},
    {2, 6, 6, 32, 24, 1, 1, {1, 0, 1, 1}},  {2, 9, 9, 16, 16, 3, 3, {1, 1, 1, 16}},
    {1, 12, 12, 8, 12, 3, 3, {1, 2, 2, 1}}, {2, 7, 7, 8, 16, 3, 3, {2, 1, 1, 4}},
    {1, 5, 5, 1, 1, 3, 3, {1, 1, 1, 1}},    {2, 28, 28, 1, 32, 3, 3, {1, 1, 1, 1}},
    {1, 10, 8, 6, 6, 3, 3, {1, 2, 2, 6}},   {5, 4, 4, 64, 64, 3, 3, {1, 1, 1, 1}},
    {2, 5, 6, 7, 9, 2, 4, {1, 1, 1, 1}},    {3, 7, 9, 24, 40, 3, 3, {1, 1, 1, 1}},
    {1, 30, 31, 16, 8, 3, 3, {1, 0, 1, 1}}, {2, 8, 5, 8, 24, 3, 3, {1, 2, 1, 1}},
    {2, 6, 6, 32, 40, 3, 3, {1, 1, 1, 1}},
};

ConvArgs make_conv(const ConvCase& k, DType t, bool bias) {
  const auto& g = k.geometry;
  const int64_t p = (k.h + 2 * g.padding - g.dilation * (k.r - 1) - 1) / g.stride + 1;
  const int64_t q = (k.w + 2 * g.padding - g.dilation * (k.s - 1) - 1) / g.stride + 1;
  ConvArgs c{.x = random({k.n, k.h, k.w, k.c}, t, 1),
             .w = random({k.o, k.r, k.s, k.c / g.groups}, kF32, 2),
             .bias = {},
             .y = random({k.n, p, q, k.o}, t, 3),
             .geometry = g};
  if (bias) c.bias = random({k.o}, kF32, 4);
  return c;
}

using Pass = void (*)(const ConvArgs&);
struct Way {
  const char* name;
  Pass forward, data, weights;
  bool (*fits)(const ConvArgs&);
};
bool always(const ConvArgs&) { return true; }
bool ungrouped(const ConvArgs& c) { return c.geometry.groups == 1; }
const Way kWays[] = {
    {"chosen", cpu::conv2d_forward, cpu::conv2d_backward_data, cpu::conv2d_backward_weights, always},
    {"oneDNN", cpu::onednn_forward, cpu::onednn_backward_data, cpu::onednn_backward_weights, always},
    {"direct", cpu::direct_forward, cpu::direct_backward_data, cpu::direct_backward_weights, ungrouped},
    {"Winograd", cpu::winograd_forward, cpu::winograd_backward_data, cpu::winograd_backward_weights,
     cpu::winograd_fits}};

// Calls f(way, arguments, bits, text) for every way that supports a case, type and setting of the two bits.
template <class F>
void each_conv(F f) {
  for (const Way& way : kWays)
    for (DType t : {kF32, kBF16, kF16})
      for (const ConvCase& k : kConvCases)
        for (int bits = 0; bits < 4; ++bits)
          if (ConvArgs c = make_conv(k, t, bits & 1); way.fits(c))
            f(way, c, bits, text(way.name, ' ', t, " case ", &k - kConvCases, " bits ", bits));
}

TEST(Conv, ForwardEqualsTheReferenceWithBiasAndRelu) {
  each_conv([](const Way& way, ConvArgs c, int bits, const std::string& what) {
    c.relu = bits & 2;
    Values want(size_t(c.y.size()));
    const Values x = values(c.x), w = values(c.w), bias = values(c.bias);
    each_product(c, [&](size_t i, size_t j, size_t at) { want[at] += x[i] * w[j]; });
    for (size_t i = 0; i < want.size(); ++i) {
      if (c.bias) want[i] += bias[i % bias.size()];
      if (c.relu) want[i] = std::max(0., want[i]);
    }
    way.forward(c);
    EXPECT_LT(error(c.y, want), bound(c.x.dtype())) << what;
  });
}

TEST(Conv, DataGradientEqualsTheReferenceAndAccumulates) {
  each_conv([](const Way& way, ConvArgs c, int bits, const std::string& what) {
    c.bias = {};
    c.beta = bits & 2 ? 1 : 0;
    Values want = scaled(values(c.x), c.beta);
    const Values y = values(c.y), w = values(c.w);
    each_product(c, [&](size_t i, size_t j, size_t at) { want[i] += y[at] * w[j]; });
    way.data(c);
    EXPECT_LT(error(c.x, want), bound(c.x.dtype())) << what;
  });
}

TEST(Conv, WeightGradientEqualsTheReferenceAndAccumulates) {
  each_conv([](const Way& way, ConvArgs c, int bits, const std::string& what) {
    c.beta = bits & 2 ? 1 : 0;
    Values dw = scaled(values(c.w), c.beta), db = scaled(values(c.bias), c.beta);
    const Values x = values(c.x), y = values(c.y);
    each_product(c, [&](size_t i, size_t j, size_t at) { dw[j] += x[i] * y[at]; });
    for (size_t i = 0; i < y.size() && c.bias; ++i) db[i % db.size()] += y[i];
    way.weights(c);
    EXPECT_LT(error(c.w, dw), bound(kF32)) << what;
    if (!c.bias) return;
    EXPECT_LT(error(c.bias, db), bound(kF32)) << what << ", bias";
  });
}

TEST(Conv, ManyThreadsOfOneProcessAgreeBitForBit) {
  std::vector<Values> results(4);
  std::vector<std::thread> team;
  for (size_t i = 0; i < results.size(); ++i)
    team.emplace_back([&, i] {
      omp_set_num_threads(1);
      for (int repeat = 0; repeat < 5; ++repeat) {
        ConvArgs c = make_conv(kConvCases[1], kF32, true);
        conv2d_forward(kCpu, c);
        conv2d_backward_weights(kCpu, c);
        results[i] = values(c.w);
      }
    });
  for (auto& t : team) t.join();
  for (const Values& r : results) EXPECT_EQ(r, results[0]);
}

TEST(Conv, RefusesAResultOfTheWrongShape) {
  ConvArgs c = make_conv(kConvCases[0], kF32, false);
  c.y = Tensor({2, 9, 8, 16});
  EXPECT_THROW(conv2d_forward(kCpu, c), Error);
}

}  // namespace
}  // namespace skein
