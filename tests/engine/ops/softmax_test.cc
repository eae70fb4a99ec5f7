// Softmax, cross-entropy and top-k hits: values against their definitions in double,
// gradients against differences.
#include <limits>

#include "tests/engine/ops/op_on_device.h"

namespace skein {
namespace {
using namespace testing;

class Softmax : public OpOnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Softmax, kDevices, device_name);

TEST_P(Softmax, LogSoftmaxSumsToOneAndHasItsGradient) {
  const Tensor x = random_uniform({5, 37}, 1, -300, 300);
  const std::vector<double> y = values(log_softmax(there(x)));
  for (size_t r = 0; r < 5; ++r) {
    double s = 0;
    for (size_t c = 0; c < 37; ++c) s += std::exp(y[r * 37 + c]);
    EXPECT_NEAR(s, 1, 1e-4);
  }
  check([](const Values& v) { return log_softmax(v[0]); }, {random_uniform({4, 9}, 2)});
}

double plain_cross_entropy(const Tensor& logits, const std::vector<int32_t>& labels, double s) {
  const std::vector<double> x = values(logits);
  const size_t n = size_t(logits.dim(1));
  double loss = 0, rows = 0;
  for (size_t r = 0; r < labels.size(); ++r) {
    if (labels[r] < 0) continue;
    double z = 0;
    for (size_t c = 0; c < n; ++c) z += std::exp(x[r * n + c]);
    for (size_t c = 0; c < n; ++c)
      loss -= (s / double(n) + (int32_t(c) == labels[r] ? 1 - s : 0)) * (x[r * n + c] - std::log(z));
    rows += 1;
  }
  return rows > 0 ? loss / rows : 0;
}

TEST_P(Softmax, CrossEntropyIsItsDefinition) {
  const std::vector<int32_t> labels{3, 0, -1, 6, 2, -7};
  const Tensor logits = random_uniform({6, 7}, 1, -4, 4), target = Tensor::of({6}, labels);
  for (const float smoothing : {0.f, 0.1f, 1.f}) {
    EXPECT_NEAR(cross_entropy(there(logits), there(target), smoothing).item(),
                plain_cross_entropy(logits, labels, smoothing), 1e-5);
    check([&](const Values& v) { return cross_entropy(v[0], there(target), smoothing); }, {logits});
  }
  for (const DType t : {kBF16, kF16}) {
    const Tensor low = cast(logits, t);
    const Tensor loss = cross_entropy(there(low), there(target), 0.1f);
    EXPECT_EQ(loss.dtype(), kF32);
    EXPECT_NEAR(loss.item(), plain_cross_entropy(low, labels, 0.1), 1e-5) << t;
  }
}

TEST_P(Softmax, AClassMayBeImpossibleWithoutSmoothing) {
  const float never = -std::numeric_limits<float>::infinity();
  const Tensor logits = there(Tensor::of<float>({1, 3}, {never, 1, 1})),
               label = there(Tensor::of<int32_t>({1}, {2})), one = there(Tensor::of<float>({1}, {1}));
  const Function f = [&](const Values& v) { return cross_entropy(v[0], label); };
  EXPECT_NEAR(f({logits}).item(), std::log(2.), 1e-6);
  EXPECT_TRUE(allclose(values(gradients(f, {logits}, one)[0]), {0, 0.5, -0.5}, 1e-6));
}

TEST_P(Softmax, CrossEntropyOfUnmarkedRowsAloneIsZeroAndMovesNothing) {
  const Tensor logits = there(random_uniform({3, 4}, 1)),
               labels = there(Tensor::of({3}, std::vector<int32_t>{-1, -1, -1}));
  const Function f = [&](const Values& v) { return cross_entropy(v[0], labels); };
  EXPECT_EQ(f({logits}).item(), 0.f);
  const Tensor one = there(Tensor::of({1}, std::vector{1.f}));
  for (const double g : values(gradients(f, {logits}, one)[0])) EXPECT_EQ(g, 0);
}

TEST(SoftmaxErrors, ALabelOutOfRangeIsNamed) {
  try {
    cross_entropy(Tensor::zeros({2, 4}), Tensor::of({2}, std::vector<int32_t>{1, 4}));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("label 4 of row 1"), std::string::npos) << e.what();
  }
}

TEST_P(Softmax, TopKHitsCountsTiesAgainstTheLabel) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x =
      there(Tensor::of({5, 3}, std::vector<float>{1, 2, 3, 2, 2, 1, 2, 2, 1, 5, 6, 7, nan, nan, nan}));
  const Tensor labels = there(Tensor::of({5}, std::vector<int32_t>{1, 0, 1, -1, 0}));
  EXPECT_EQ(values(top_k_hits(x, labels, 1)), (std::vector<double>{1, 4}));  // only row 1
  EXPECT_EQ(values(top_k_hits(x, labels, 2)), (std::vector<double>{3, 4}));
  EXPECT_EQ(values(top_k_hits(x, labels, 5)), (std::vector<double>{3, 4}));  // more than there are classes
}

}  // namespace
}  // namespace skein
