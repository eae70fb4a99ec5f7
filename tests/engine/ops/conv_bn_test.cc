// A convolution fused with batch norm: it is one after the other, and has their gradients.
#include "tests/support/norms.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

TEST(ConvBn, HasItsGradientsWithResidualAndRelu) {
  const Shape y{2, 5, 5, 4};
  const NormState s = fresh(4);
  for (const bool training : {true, false})
    for (const bool relu : {false, true}) {
      const Values in{random_normal({2, 5, 5, 4}, 1), random_normal({4, 3, 3, 4}, 2, 0.3f), s.gamma, s.shift,
                      random_normal(y, 3)};
      const auto f = [&](const Values& v, const Tensor& residual) {
        return conv_bn(v[0], v[1], {.padding = 1}, with(s, v[2], v[3]), {training, relu, residual});
      };
      SCOPED_TRACE(text("training ", training, " relu ", relu));
      gradcheck([&](const Values& v) { return f(v, {}); }, {in[0], in[1], in[2], in[3]}, kFine);
      gradcheck([&](const Values& v) { return f(v, v[4]); }, in, kFine);
      gradcheck([&](const Values& v) { return f(v, v[0]); }, {in[0], in[1], in[2], in[3]}, kFine);
    }
}

TEST(ConvBn, AConvolutionThatWouldReadItsResultAgainRefusesToGiveSums) {
  const Tensor x = random_normal({2, 5, 5, 4}, 1), w = random_normal({6, 3, 3, 2}, 2);
  ConvArgs c{.x = x, .w = w, .bias = {}, .y = Tensor({2, 5, 5, 6}), .geometry = {.padding = 1, .groups = 2}};
  EXPECT_FALSE(cpu::sums_for(c).sum);
  c.sums = {Tensor({6}), Tensor({6})};
  EXPECT_THROW(conv2d_forward(kCpu, c), Error);
}

TEST(ConvBn, IsConvolutionThenBatchNormInEveryMode) {
  for (const DType t : {kF32, kBF16, kF16})
    for (const bool training : {true, false})
      for (const bool relu : {false, true})
        for (const bool add : {false, true}) {
          const Tensor x = random_normal({3, 6, 6, 4}, 1, 1, t), w = random_normal({8, 3, 3, 4}, 2, 0.3f);
          const Tensor residual = add ? random_normal({3, 6, 6, 8}, 3, 1, t) : Tensor();
          const NormState a = fresh(8), b = fresh(8);
          const Tensor y = conv_bn(x, w, {.padding = 1}, a, {training, relu, residual});
          const Tensor want = batch_norm(conv2d(x, w, {}, {.padding = 1}), b, {training, relu, residual});
          EXPECT_EQ(y.dtype(), t);
          EXPECT_TRUE(allclose(values(y), values(want),
                               t == kF32   ? 2e-5
                               : t == kF16 ? 4.0 / 1024
                                           : 4.0 / 128))
              << t << training << relu << add;
          EXPECT_TRUE(allclose(a.running_mean, b.running_mean));
          EXPECT_TRUE(allclose(a.running_var, b.running_var));
        }
}

TEST(ConvBn, GivesBackTheConvolutionsOutputDuringBackward) {
  const Tensor x = random_normal({4, 16, 16, 16}, 1), w = random_normal({16, 3, 3, 16}, 2, 0.1f);
  const NormState s = fresh(16);
  Tape tape;
  Tensor dw(w.shape());
  tape.watch(w, dw);
  const int64_t before = memory_use(kCpu).now;
  {
    const Tensor loss = sum(conv_bn(x, w, {.padding = 1}, s, {.relu = true}));
    EXPECT_GT(memory_use(kCpu).now, before + x.bytes());
    tape.backward(loss);
  }
  EXPECT_LT(memory_use(kCpu).now, before + x.bytes() / 2);
}

}  // namespace
}  // namespace skein
