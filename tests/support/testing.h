// What tests of the engine share: seeded tensors, comparison by type, a fixture for
// each device, finite differences.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "engine/ops.h"
#include "engine/random.h"
#include "engine/tape.h"
#include "engine/tensor.h"

namespace skein::testing {

inline constexpr Device kFirstGpu{Device::kCuda, 0};

// A test with this fixture runs once per device: TEST_P(Thing, DoesSo) { ... GetParam() ... } and
// INSTANTIATE_TEST_SUITE_P(Devices, Thing, kDevices, device_name).
class OnDevice : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda() && cuda_device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
  }
};
inline const auto kDevices = ::testing::Values(kCpu, kFirstGpu);
inline std::string device_name(const ::testing::TestParamInfo<Device>& p) {
  return p.param.is_cuda() ? "cuda" : "cpu";
}

inline Draw draw(uint64_t seed) { return {seed, Purpose::kTest, 0, 0}; }

inline Tensor random_uniform(Shape s, uint64_t seed, float lo = -1, float hi = 1, DType t = kF32) {
  Tensor x(s, t);
  fill_uniform(x, draw(seed), lo, hi);
  return x;
}
inline Tensor random_normal(Shape s, uint64_t seed, float std = 1, DType t = kF32) {
  Tensor x(s, t);
  fill_normal(x, draw(seed), 0, std);
  return x;
}
// Uniform in +-[0.1, 1.1): no element is near a kink at zero.
inline Tensor random_off_zero(Shape s, uint64_t seed) {
  Tensor x = random_uniform(s, seed);
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] += x.data<float>()[i] < 0 ? -0.1f : 0.1f;
  return x;
}
// A permutation of evenly spaced values: the largest of any few is larger by more than a step.
inline Tensor distinct(Shape s, uint64_t seed) {
  Tensor x(s);
  std::vector<std::pair<uint32_t, int64_t>> order;
  for (int64_t i = 0; i < x.size(); ++i) order.emplace_back(draw(seed).bits(uint64_t(i)), i);
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[order[size_t(i)].second] = 0.1f * float(i);
  return x;
}

inline std::vector<double> values(const Tensor& x) {
  const Tensor host = x.to(kCpu);
  if (x.device().is_cuda()) current_stream(x.device()).sync();
  std::vector<double> v(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < x.size(); ++i)
    v[size_t(i)] = x.dtype() == kI32 ? double(host.data<int32_t>()[i]) : visit_float(x.dtype(), [&](auto t) {
      return double(float(host.data<decltype(t)>()[i]));
    });
  return v;
}

// The tolerance relative to 1 + |wanted|.
inline double tolerance(DType t) { return t == kBF16 ? 1.0 / 128 : t == kF16 ? 1.0 / 1024 : 1e-5; }

inline ::testing::AssertionResult allclose(const std::vector<double>& got, const std::vector<double>& want,
                                           double tol) {
  if (got.size() != want.size())
    return ::testing::AssertionFailure() << got.size() << " values, wanted " << want.size();
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - want[i]) <= tol * (1 + std::abs(want[i]))))  // also catches NaN
      return ::testing::AssertionFailure() << "element " << i << " is " << got[i] << ", wanted " << want[i];
  return ::testing::AssertionSuccess();
}
inline ::testing::AssertionResult allclose(const Tensor& got, const std::vector<double>& want) {
  return allclose(values(got), want, tolerance(got.dtype()));
}
inline ::testing::AssertionResult allclose(const Tensor& got, const Tensor& want) {
  if (got.shape() != want.shape())
    return ::testing::AssertionFailure() << got.shape() << " wanted " << want.shape();
  return allclose(values(got), values(want), std::max(tolerance(got.dtype()), tolerance(want.dtype())));
}

using Values = std::vector<Tensor>;
using Function = std::function<Tensor(const Values&)>;

inline double inner(const std::vector<double>& a, const std::vector<double>& b) {
  double s = 0;
  for (size_t i = 0; i < a.size(); ++i) s += a[i] * b[i];
  return s;
}

// The gradients of sum(f(inputs) * weights), as the tape finds them.
inline Values gradients(const Function& f, const Values& inputs, const Tensor& weights) {
  Tape tape;
  Values grads;
  for (const Tensor& x : inputs) {
    grads.push_back(random_uniform(x.shape(), 77).to(x.device()));  // noise, which must be overwritten
    if (x.dtype() != kF32) grads.back() = cast(grads.back(), x.dtype());
    tape.watch(x, grads.back());
  }
  tape.backward(sum(mul(f(inputs), weights)));
  return grads;
}

struct GradCheck {
  float step = 1e-2f;
  double tolerance = 5e-3;  // relative to the gradient's norm
  Device device = kCpu;
};

// Compares the tape's gradient of a random projection of f with central differences along random directions
// of every input (f32, given on the CPU), and along single elements.
inline void gradcheck(const Function& f, Values inputs, GradCheck how = {}) {
  const auto on_device = [&] {
    Values there;
    for (const Tensor& x : inputs) there.push_back(x.to(how.device));
    return there;
  };
  const Tensor y = f(on_device());
  const Tensor weights = random_uniform(y.shape(), 4711);
  const std::vector<double> w = values(weights);
  const Values grads = gradients(f, on_device(), weights.to(how.device));
  for (size_t j = 0; j < inputs.size(); ++j) {
    const std::vector<double> g = values(grads[j]);
    const double norm = std::sqrt(inner(g, g)) + 1e-3;
    const Tensor original = inputs[j];
    for (int trial = 0; trial < 7; ++trial) {
      std::vector<double> v(g.size(), 0.0);
      const Draw d{uint64_t(100 * j) + uint64_t(trial), Purpose::kTest, 1, 0};
      if (trial < 3)
        for (size_t i = 0; i < v.size(); ++i) v[i] = d.unit(i) < 0.5f ? -1 : 1;
      else
        v[d.bits(0) % v.size()] = 1;
      const auto at = [&](double h) {
        inputs[j] = original.clone();
        for (size_t i = 0; i < v.size(); ++i) inputs[j].data<float>()[i] += float(h * v[i]);
        return inner(values(f(on_device())), w);
      };
      const double numeric = (at(how.step) - at(-how.step)) / (2 * how.step);
      inputs[j] = original;
      EXPECT_NEAR(inner(g, v), numeric, how.tolerance * norm) << "input " << j << " direction " << trial;
    }
  }
}

}  // namespace skein::testing
