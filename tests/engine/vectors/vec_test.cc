// The algebra of flat vectors against plain loops.
#include <limits>

#include "engine/loops/moved_bytes.h"
#include "engine/vectors/vec.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

constexpr int64_t kN = 40001;  // past the length from which loops run in parallel

class Vec : public OnDevice {
 protected:
  Tensor make(uint64_t seed, DType t = kF32) const {
    return random_uniform({kN}, seed, -1, 1, t).to(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Vec, kDevices, device_name);

template <class F>
std::vector<double> each(const std::vector<double>& a, const std::vector<double>& b, F f) {
  std::vector<double> y;
  for (size_t i = 0; i < a.size(); ++i) y.push_back(f(a[i], b[i]));
  return y;
}

TEST_P(Vec, TheMemoryThatTheyMoveIsCounted) {
  const Tensor x = make(1), low = make(2, kBF16);
  MovedBytes moved;
  axpy(x, 2.f, make(3));
  const int64_t made = GetParam().is_host() ? 0 : 8 * kN;  // make() copies to the device
  EXPECT_EQ(moved.take(), 12 * kN + made);
  copy(x, low);
  EXPECT_EQ(moved.take(), 6 * kN);
  {
    MovedBytes inner;
    copy_bytes(x, x.clone());
    EXPECT_EQ(inner.take(), 16 * kN);
  }
  fill(x, 1.f);
  EXPECT_EQ(moved.take(), 4 * kN);
}

TEST_P(Vec, FunctionsAreTheirFormulas) {
  const Tensor x = make(1), y = make(2);
  const std::vector<double> p = values(x), q = values(y);
  const auto on_y = [&](auto act) {
    const Tensor t = y.clone();
    act(t);
    return t;
  };
  EXPECT_TRUE(
      allclose(on_y([](const Tensor& t) { fill(t, 3.f); }), each(p, q, [](double, double) { return 3; })));
  EXPECT_TRUE(allclose(on_y([&](const Tensor& t) { copy(t, x); }), p));
  EXPECT_TRUE(allclose(on_y([](const Tensor& t) { scale(t, -2.f); }),
                       each(p, q, [](double, double b) { return -2 * b; })));
  EXPECT_TRUE(allclose(on_y([&](const Tensor& t) { scaled_copy(t, 0.5f, x); }),
                       each(p, q, [](double a, double) { return a / 2; })));
  EXPECT_TRUE(allclose(on_y([&](const Tensor& t) { axpy(t, 3.f, x); }),
                       each(p, q, [](double a, double b) { return b + 3 * a; })));
  EXPECT_TRUE(allclose(on_y([&](const Tensor& t) { lerp(t, x, 0.25f); }),
                       each(p, q, [](double a, double b) { return b + 0.25 * (a - b); })));
}

TEST_P(Vec, LerpByZeroKeepsEveryBit) {
  const Tensor x = make(1), y = make(2), before = y.clone();
  lerp(y, x, 0.f);
  EXPECT_EQ(values(y), values(before));
}

TEST_P(Vec, AFactorMayLieInDeviceMemory) {
  const Tensor x = make(1), y = make(2), slot = Tensor::of({1}, std::vector{-0.5f}).to(GetParam());
  const std::vector<double> want = each(values(x), values(y), [](double a, double b) { return b - 0.5 * a; });
  axpy(y, Scalar::at(slot.data<float>()), x);
  EXPECT_TRUE(allclose(y, want));
}

TEST_P(Vec, NarrowTypesAreMixedIn) {
  for (const DType t : {kBF16, kF16}) {
    const Tensor low = make(1, t), high = make(2);
    const std::vector<double> p = values(low), q = values(high);
    copy(high, low);
    EXPECT_EQ(values(high), p);
    axpy(low, 2.f, high);
    EXPECT_TRUE(allclose(low, each(p, q, [](double a, double) { return 3 * a; })));
    fill(low, 1.5f);
    EXPECT_EQ(values(low), std::vector<double>(size_t(kN), 1.5));
  }
}

TEST_P(Vec, TheTwo16BitTypesBecomeEachOther) {
  const Tensor a = make(1, kBF16), b({kN}, kF16, GetParam());
  copy(b, a);  // 8 bits fit into 11, and no number is far below 2^-14
  EXPECT_TRUE(allclose(values(b), values(a), 1e-7));
  axpy(a, -1.f, b);
  EXPECT_TRUE(allclose(values(a), std::vector<double>(size_t(kN), 0), 1e-7));
}

TEST_P(Vec, DotAndNormAreInDouble) {
  const Tensor x = make(1), y = make(2);
  const double want = inner(values(x), values(y));
  EXPECT_NEAR(dot(x, y), want, 1e-9 * kN);
  EXPECT_NEAR(norm(x), std::sqrt(inner(values(x), values(x))), 1e-9);
  EXPECT_EQ(dot(x, y), dot(x, y));
}

TEST(VecFinite, OneBadElementIsSeen) {
  const Tensor x = random_uniform({kN}, 1);
  EXPECT_TRUE(all_finite(x));
  x.data<float>()[kN - 1] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(all_finite(x));
  x.data<float>()[kN - 1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(all_finite(x));
}

TEST_P(Vec, SgdIsItsRecurrence) {
  for (const float mu : {0.f, 0.9f})
    for (const bool nesterov : {false, true}) {
      const Tensor x = make(1), v = make(2), g = make(3);
      std::vector<double> p = values(x), w = values(v);
      const std::vector<double> grad = values(g);
      const int64_t decayed = kN / 3;
      const double lr = 0.1, decay = 0.01;
      for (size_t i = 0; i < p.size(); ++i) {
        const double d = grad[i] + (int64_t(i) < decayed ? decay * p[i] : 0);
        w[i] = mu * w[i] + d;
        p[i] -= lr * (mu == 0 ? d : nesterov ? d + mu * w[i] : w[i]);
      }
      SgdArgs a;
      a.x = x, a.g = g, a.at = x, a.lr = lr, a.mu = mu, a.decay = decay, a.decayed = decayed;
      a.nesterov = nesterov;
      if (mu != 0) a.v = v;
      sgd_update(a);
      EXPECT_TRUE(allclose(x, p)) << mu << nesterov;
      if (mu != 0) { EXPECT_TRUE(allclose(v, w)) << nesterov; }
    }
}

TEST(VecErrors, SizesMustAgree) {
  EXPECT_THROW(copy(Tensor({2}), Tensor({3})), Error);
  EXPECT_THROW(axpy(Tensor({2}), 1.f, Tensor({3})), Error);
}

}  // namespace
}  // namespace skein
