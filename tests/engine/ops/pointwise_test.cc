// Every row of pointwise.def, from the table itself; and broadcasting.
#include <limits>
#include <map>

#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

float sigm(float x) { return 1.f / (1.f + expf(-x)); }

struct Row {
  const char* name;
  Tensor (*unary)(const Tensor&);
  Tensor (*binary)(const Tensor&, const Tensor&);
  float (*f)(float a, float b);  // unary rows ignore b
};
#define UNARY(name, onnx, fx, dfx) \
  Row{#name, skein::name, nullptr, [](float x, float) -> float { return fx; }},
#define BINARY(name, onnx, fab, dfa, dfb) \
  Row{#name, nullptr, skein::name, [](float a, float b) -> float { return fab; }},
const std::vector<Row> kRows{
#include "engine/ops/pointwise.def"
};
#undef UNARY
#undef BINARY

Tensor call(const Row& row, const Tensor& a, const Tensor& b) {
  return row.unary ? row.unary(a) : row.binary(a, b);
}

// Pairs of ordinary values at which f and its neighborhood are finite and, by distance from zero and from
// each other, f has no kink.
struct Samples {
  std::vector<float> a, b;
};
constexpr float kStep = 1e-2f;
Samples smooth_samples(const Row& row) {
  Samples s;
  for (int i = 0; i < 4000; ++i) {
    const float a = -3 + 6 * draw(5).unit(uint64_t(2 * i)), b = -3 + 6 * draw(5).unit(uint64_t(2 * i + 1));
    bool good = std::abs(a) > 0.3f && std::abs(b) > 0.3f && std::abs(std::abs(a) - std::abs(b)) > 0.05f;
    for (int axis = 0; axis < (row.unary ? 1 : 2); ++axis) {
      const float h = axis ? 0 : kStep, k = axis ? kStep : 0;
      const float left = row.f(a - h, b - k), mid = row.f(a, b), right = row.f(a + h, b + k);
      good = good && std::isfinite(left) && std::isfinite(mid) && std::isfinite(right) &&
             std::abs(right - 2 * mid + left) < kStep / 4 * (1 + std::abs(mid));
    }
    if (good) s.a.push_back(a), s.b.push_back(b);
  }
  return s;
}

class Pointwise : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Pointwise, kDevices, device_name);

TEST_P(Pointwise, EveryRowComputesItsFormula) {
  for (const Row& row : kRows)
    for (const int64_t n : {1, 1000, 40000}) {
      const Tensor a = random_uniform({n}, 1, -3, 3), b = random_uniform({n}, 2, -3, 3);
      const Tensor y = call(row, a.to(GetParam()), b.to(GetParam()));
      const std::vector<double> got = values(y);
      for (int64_t i = 0; i < n; ++i) {
        const float want = row.f(a.data<float>()[i], b.data<float>()[i]);
        if (std::isnan(want)) continue;
        if (std::isinf(want))
          EXPECT_EQ(got[size_t(i)], want) << row.name;
        else
          ASSERT_NEAR(got[size_t(i)], want, 2e-6 * (1 + std::abs(want))) << row.name << " at " << i;
      }
    }
}

TEST_P(Pointwise, EveryDerivativeIsTheDifferenceQuotient) {
  for (const Row& row : kRows) {
    const Samples s = smooth_samples(row);
    const int64_t n = int64_t(s.a.size());
    ASSERT_GT(n, 500) << row.name;
    const Tensor a = Tensor::of({n}, s.a).to(GetParam()), b = Tensor::of({n}, s.b).to(GetParam());
    const Tensor ones = Tensor::of({n}, std::vector<float>(size_t(n), 1.f)).to(GetParam());
    Values in{a};
    if (row.binary) in.push_back(b);
    const Values g = gradients([&](const Values& v) { return call(row, v[0], v.back()); }, in, ones);
    const std::vector<double> da = values(g[0]), db = values(g.back());
    for (size_t i = 0; i < s.a.size(); ++i) {
      const double h = kStep;
      const float p = s.a[i], q = s.b[i];
      const double want_a = (double(row.f(p + kStep, q)) - row.f(p - kStep, q)) / (2 * h);
      ASSERT_NEAR(da[i], want_a, 5e-3 * (1 + std::abs(want_a)))
          << row.name << " in its first at " << p << ", " << q;
      if (row.unary) continue;
      const double want_b = (double(row.f(p, q + kStep)) - row.f(p, q - kStep)) / (2 * h);
      ASSERT_NEAR(db[i], want_b, 5e-3 * (1 + std::abs(want_b)))
          << row.name << " in its second at " << p << ", " << q;
    }
  }
}

TEST_P(Pointwise, EveryDerivativeIsFiniteWhereTheFunctionIs) {
  const std::vector<float> hard{0.f, -0.f, 1e-4f, -1e-4f, 1.f, -1.f, 90.f, -90.f, 1e4f, -1e4f};
  for (const Row& row : kRows)
    for (const float p : hard)
      for (const float q : hard) {
        if (!std::isfinite(row.f(p, q))) continue;
        const Tensor a = Tensor::of({1}, std::vector{p}).to(GetParam()),
                     b = Tensor::of({1}, std::vector{q}).to(GetParam());
        const Tensor one = Tensor::of({1}, std::vector{1.f}).to(GetParam());
        Values in{a};
        if (row.binary) in.push_back(b);
        for (const Tensor& g : gradients([&](const Values& v) { return call(row, v[0], v.back()); }, in, one))
          EXPECT_TRUE(std::isfinite(g.item())) << row.name << " at " << p << ", " << q << ": " << g.item();
      }
}

// As the ReLUs of convolutions and norms do: a model that has diverged must not evaluate to numbers.
TEST_P(Pointwise, ReluKeepsNaNs) {
  for (const DType t : {kF32, kBF16, kF16}) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Tensor x = cast(Tensor::of<float>({5}, {-1, 2, nan, -0.f, 0}), t).to(GetParam());
    const std::vector<double> y = values(relu(x));
    EXPECT_TRUE(std::isnan(y[2])) << t;
    for (const size_t zero : {0, 3, 4}) EXPECT_TRUE(y[zero] == 0 && !std::signbit(y[zero])) << t << zero;
    EXPECT_EQ(y[1], 2) << t;
  }
}

TEST_P(Pointwise, TheLargerAndTheSmallerKeepNaNsOfEither) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = Tensor::of<float>({3}, {nan, 1, 1}).to(GetParam()),
               b = Tensor::of<float>({3}, {1, nan, 2}).to(GetParam());
  for (const auto& [y, third] : {std::pair(values(maximum(a, b)), 2.), {values(minimum(a, b)), 1.}}) {
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
    EXPECT_EQ(y[2], third);
  }
}

TEST_P(Pointwise, EveryRowIn16BitsIsTheFloatResultRounded) {
  for (const DType t : {kBF16, kF16})
    for (const Row& row : kRows) {
      const Samples s = smooth_samples(row);
      const int64_t n = int64_t(s.a.size());
      const Tensor a = cast(Tensor::of({n}, s.a), t), b = cast(Tensor::of({n}, s.b), t);
      const Tensor y = call(row, a.to(GetParam()), b.to(GetParam()));
      ASSERT_EQ(y.dtype(), t) << row.name;
      const std::vector<double> got = values(y), p = values(a), q = values(b);
      for (size_t i = 0; i < got.size(); ++i) {
        const double want = row.f(float(p[i]), float(q[i]));
        ASSERT_NEAR(got[i], want, std::abs(want) / (t == kF16 ? 2048 : 256) + 1e-6) << row.name;
      }
      const Tensor ones = cast(Tensor::of({n}, std::vector<float>(size_t(n), 1.f)), t).to(GetParam());
      const Function f = [&](const Values& v) { return call(row, v[0], v.back()); };
      Values low{a.to(GetParam())}, high{cast(a, kF32).to(GetParam())};
      if (row.binary) low.push_back(b.to(GetParam())), high.push_back(cast(b, kF32).to(GetParam()));
      const Values g = gradients(f, low, ones), want = gradients(f, high, cast(ones, kF32));
      for (size_t j = 0; j < g.size(); ++j)  // y, which the derivative may read, is rounded, too
        EXPECT_TRUE(allclose(values(g[j]), values(want[j]), 2 * tolerance(t)))
            << t << row.name << " input " << j;
    }
}

TEST(PointwiseTable, AgreesWithTheLibraryInDouble) {
  using F = double (*)(double);
  const std::map<std::string, F> known{{"tanh", std::tanh},
                                       {"exp", std::exp},
                                       {"log", std::log},
                                       {"sqrt", std::sqrt},
                                       {"abs", std::fabs},
                                       {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
                                       {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
                                       {"softplus", [](double x) { return std::log1p(std::exp(x)); }}};
  size_t found = 0;
  for (const Row& row : kRows) {
    if (!known.contains(row.name)) continue;
    ++found;
    for (float x = 0.0625f; x < 20; x *= 1.5f)
      EXPECT_NEAR(row.f(x, 0), known.at(row.name)(x), 1e-6 * (1 + std::abs(known.at(row.name)(x))))
          << row.name << " at " << x;
  }
  EXPECT_GE(found, 7u);
}

struct Pair {
  Shape a, b, y;
};
const std::vector<Pair> kPairs{{{2, 3, 4}, {4}, {2, 3, 4}},
                               {{2, 1, 4}, {3, 1}, {2, 3, 4}},
                               {{1}, {5}, {5}},
                               {{5}, {}, {5}},
                               {{4, 1}, {1, 6}, {4, 6}},
                               {{2, 3, 4}, {2, 3, 1}, {2, 3, 4}},
                               {{2, 3, 4}, {2, 1, 4}, {2, 3, 4}},
                               {{3, 1, 5, 1}, {1, 2, 1, 4}, {3, 2, 5, 4}},
                               {{4}, {3, 4}, {3, 4}},
                               {{1, 1}, {1}, {1, 1}},
                               {{0, 3}, {3}, {0, 3}}};

TEST_P(Pointwise, BinaryRowsBroadcastLikeNumpy) {
  for (const auto& [sa, sb, sy] : kPairs) {
    const Tensor a = random_uniform(sa, 1), b = random_uniform(sb, 2);
    const Tensor y = sub(a.to(GetParam()), b.to(GetParam()));
    ASSERT_EQ(y.shape(), sy);
    std::vector<double> want;
    for (int64_t i = 0; i < y.size(); ++i) {
      int64_t at_a = 0, at_b = 0, step_a = 1, step_b = 1, rest = i;
      for (int k = 1; k <= sy.rank(); ++k) {
        const int64_t at = rest % sy[sy.rank() - k];
        rest /= sy[sy.rank() - k];
        const int64_t m = k <= sa.rank() ? sa[sa.rank() - k] : 1, n = k <= sb.rank() ? sb[sb.rank() - k] : 1;
        at_a += m == 1 ? 0 : at * step_a, at_b += n == 1 ? 0 : at * step_b;
        step_a *= m, step_b *= n;
      }
      want.push_back(double(a.data<float>()[at_a]) - double(b.data<float>()[at_b]));
    }
    EXPECT_TRUE(allclose(y, want)) << sa << " - " << sb;
  }
}

TEST_P(Pointwise, GradientsOfRepeatedOperandsAreSummed) {
  for (const auto& [sa, sb, sy] : kPairs) {
    if (sy.volume() == 0) continue;
    const Values in{random_off_zero(sa, 1), random_off_zero(sb, 2)};
    const GradCheck how{.device = GetParam()};
    gradcheck([](const Values& v) { return mul(v[0], v[1]); }, in, how);
    gradcheck([](const Values& v) { return add(v[0], v[1]); }, in, how);
    gradcheck([](const Values& v) { return sub(v[0], v[1]); }, in, how);
  }
}

TEST_P(Pointwise, AFloatBiasOn16BitActivationsStaysMixed) {
  for (const DType t : {kBF16, kF16}) {
    const Tensor x = random_uniform({64, 10}, 1, -1, 1, t).to(GetParam()),
                 bias = random_uniform({10}, 2).to(GetParam());
    EXPECT_EQ(add(x, bias).dtype(), t);
    EXPECT_EQ(add(bias, x).dtype(), kF32);
    const Tensor w = random_uniform({64, 10}, 3, -1, 1, t).to(GetParam());
    const Values g = gradients([](const Values& v) { return add(v[0], v[1]); }, {x, bias}, w);
    EXPECT_EQ(g[1].dtype(), kF32);
    std::vector<double> want(10, 0.0);
    const std::vector<double> rows = values(w);
    for (size_t i = 0; i < rows.size(); ++i) want[i % 10] += rows[i];
    EXPECT_TRUE(allclose(g[1], want));
    EXPECT_TRUE(allclose(g[0], rows));
  }
}

TEST(PointwiseTable, ShapesThatDoNotBroadcastAreNamed) {
  try {
    add(Tensor({2, 3}), Tensor({4}));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("[2,3]"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("[4]"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace skein
