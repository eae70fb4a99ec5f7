// A batch norm folded into its convolution is the same function of the image, on any device.
#include "engine/ops/fold.h"

#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

class Fold : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Fold, kDevices, device_name);

NormState learned(int64_t channels, Device d) {
  return {random_uniform({channels}, 1, -1, 2).to(d), random_normal({channels}, 2).to(d),
          random_normal({channels}, 3).to(d), random_uniform({channels}, 4, 0.5f, 3).to(d)};
}

TEST_P(Fold, IsTheConvolutionAndThenTheNorm) {
  const Device d = GetParam();
  for (const int groups : {1, 4}) {
    const Tensor x = random_normal({2, 7, 6, 8}, 5).to(d);
    const Tensor w = random_normal({12, 3, 3, 8 / groups}, 6, 0.3f).to(d);
    const ConvGeometry g{.stride = 2, .padding = 1, .groups = groups};
    const NormState s = learned(12, d);
    const Folded f = fold_norm(w, s);
    EXPECT_TRUE(allclose(conv2d(x, f.w, f.bias, g), batch_norm(conv2d(x, w, {}, g), s, {.training = false})))
        << groups;
  }
}

TEST_P(Fold, OfANormThatDoesNothingChangesNothing) {
  const Device d = GetParam();
  const Tensor w = random_normal({5, 1, 1, 7}, 1).to(d);
  const auto all = [&](float v) { return Tensor::of<float>({5}, std::vector<float>(5, v)).to(d); };
  const NormState s{all(1), all(0), all(0), all(1), 0.1f, 0};
  const Folded f = fold_norm(w, s);
  EXPECT_EQ(values(f.w), values(w));
  EXPECT_EQ(values(f.bias), std::vector<double>(5, 0));
}

TEST_P(Fold, RoundsOnceToANarrowType) {
  const Device d = GetParam();
  const Tensor w = random_normal({6, 3, 3, 4}, 1).to(d);
  const NormState s = learned(6, d);
  const Folded narrow = fold_norm(w, s, kBF16), wide = fold_norm(w, s);
  EXPECT_EQ(narrow.w.dtype(), kBF16);
  EXPECT_EQ(values(narrow.w), values(cast(wide.w, kBF16)));
  EXPECT_EQ(values(narrow.bias), values(wide.bias));
}

// conv_bn folds without a tape; with one it cannot, because gamma needs a gradient.
TEST_P(Fold, LeavesEvaluationAsItIs) {
  const Device d = GetParam();
  for (const DType t : {kF32, kBF16, kF16})
    for (const bool relu : {false, true})
      for (const bool add : {false, true}) {
        const Tensor x = random_normal({2, 8, 8, 16}, 1, 1, t).to(d);
        const Tensor w = random_normal({24, 3, 3, 16}, 2, 0.1f).to(d);
        const Tensor residual = add ? random_normal({2, 8, 8, 24}, 3, 1, t).to(d) : Tensor();
        const NormState s = learned(24, d);
        const NormMode mode{.training = false, .relu = relu, .residual = residual};
        const Tensor folded = conv_bn(x, w, {.padding = 1}, s, mode);
        Tape tape;
        tape.watch(s.gamma, Tensor({24}, kF32, d));
        const Tensor whole = conv_bn(x, w, {.padding = 1}, s, mode);
        EXPECT_TRUE(allclose(values(folded), values(whole), t == kF32 ? 2e-5 : 4.0 / 128))
            << t << relu << add;
      }
}

}  // namespace
}  // namespace skein
