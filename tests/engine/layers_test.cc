// The ops that call the backend: their gradients by differences, their rules about shapes, and fusion.
#include "engine/outline.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

TEST(Matmul, HasItsGradients) {
  gradcheck([](const Values& v) { return matmul(v[0], v[1]); },
            {random_uniform({5, 3}, 1), random_uniform({3, 4}, 2)});
  gradcheck([](const Values& v) { return matmul(v[0], v[0]); }, {random_uniform({4, 4}, 1)});
  EXPECT_THROW(matmul(Tensor({2, 3}), Tensor({2, 3})), Error);
}

TEST(Linear, HasItsGradientsWithAndWithoutBias) {
  const Values in{random_uniform({6, 5}, 1), random_uniform({3, 5}, 2), random_uniform({3}, 3)};
  gradcheck([](const Values& v) { return linear(v[0], v[1], v[2]); }, in);
  gradcheck([](const Values& v) { return linear(v[0], v[1]); }, {in[0], in[1]});
  EXPECT_TRUE(allclose(linear(in[0], in[1], in[2]), add(matmul(in[0], transpose(in[1], {1, 0})), in[2])));
  EXPECT_THROW(linear(in[0], in[1], in[0]), Error);
}

TEST(Linear, In16BitsKeepsFloatMasters) {
  for (const DType t : {kBF16, kF16}) {
    const Tensor x = random_uniform({6, 5}, 1, -1, 1, t), w = random_uniform({3, 5}, 2),
                 b = random_uniform({3}, 3);
    const Tensor y = linear(x, w, b);
    EXPECT_EQ(y.dtype(), t);
    EXPECT_TRUE(allclose(values(y), values(linear(cast(x, kF32), w, b)), 2 * tolerance(t)));
    const Tensor r = random_uniform({6, 3}, 4, -1, 1, t);
    const Function f = [](const Values& v) { return linear(v[0], v[1], v[2]); };
    const Values g = gradients(f, {x, w, b}, r), want = gradients(f, {cast(x, kF32), w, b}, cast(r, kF32));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(g[i].dtype(), i == 0 ? t : kF32);
      EXPECT_TRUE(allclose(values(g[i]), values(want[i]), 2 * tolerance(t))) << t << ' ' << i;
    }
  }
}

struct ConvCase {
  Shape x, w;
  ConvGeometry g;
};
const std::vector<ConvCase> kConvs{{{2, 5, 6, 3}, {4, 3, 3, 3}, {.stride = 1, .padding = 1}},
                                   {{2, 7, 5, 4}, {6, 3, 3, 2}, {.stride = 2, .padding = 1, .groups = 2}},
                                   {{1, 8, 8, 2}, {3, 3, 2, 2}, {.padding = 2, .dilation = 2}},
                                   {{2, 4, 4, 3}, {5, 1, 1, 3}, {.stride = 2}},
                                   {{1, 6, 6, 4}, {4, 3, 3, 1}, {.padding = 1, .groups = 4}}};

TEST(Conv2d, HasItsGradients) {
  for (const ConvCase& c : kConvs) {
    const Values in{random_uniform(c.x, 1), random_uniform(c.w, 2), random_uniform({c.w[0]}, 3)};
    gradcheck([&](const Values& v) { return conv2d(v[0], v[1], v[2], c.g); }, in);
    gradcheck([&](const Values& v) { return conv2d(v[0], v[1], {}, c.g); }, {in[0], in[1]});
  }
}

TEST(Conv2d, UsedTwiceAddsItsGradients) {
  gradcheck(
      [](const Values& v) {
        return conv2d(conv2d(v[0], v[1], v[2], {.padding = 1}), v[1], v[2], {.padding = 1});
      },
      {random_uniform({1, 4, 4, 2}, 1), random_uniform({2, 3, 3, 2}, 2), random_uniform({2}, 3)});
}

TEST(Conv2d, ShapesThatDoNotFitAreNamed) {
  for (const ConvCase& c :
       {ConvCase{{1, 4, 4, 3}, {2, 3, 3, 2}, {}}, ConvCase{{1, 4, 4, 3}, {2, 5, 5, 3}, {}},
        ConvCase{{1, 4, 4, 4}, {3, 3, 3, 2}, {.groups = 2}}}) {
    try {
      conv2d(Tensor(c.x), Tensor(c.w), {}, c.g);
      FAIL() << "no error for " << c.x << c.w;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(text(c.x)), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(text(c.w)), std::string::npos) << e.what();
    }
  }
}

TEST(Pool2d, HasItsGradients) {
  for (const Pool& p : {Pool{2, 2, 0}, Pool{3, 2, 1}, Pool{3, 2, 0, true}, Pool{1, 2, 0}, Pool{3, 1, 1}}) {
    gradcheck([&](const Values& v) { return max_pool2d(v[0], p); }, {distinct({2, 6, 7, 3}, 1)});
    gradcheck([&](const Values& v) { return avg_pool2d(v[0], p); }, {random_uniform({2, 6, 7, 3}, 1)});
  }
  gradcheck([](const Values& v) { return global_avg_pool(v[0]); }, {random_uniform({2, 3, 4, 5}, 1)});
}

TEST(Pool2d, ExtentsFollowTheUsualRule) {
  const Tensor x = Tensor::zeros({1, 7, 8, 1});
  EXPECT_EQ(max_pool2d(x, {3, 2, 1}).shape(), Shape({1, 4, 4, 1}));
  EXPECT_EQ(max_pool2d(x, {2, 2, 0}).shape(), Shape({1, 3, 4, 1}));
  EXPECT_EQ(max_pool2d(x, {2, 2, 0, true}).shape(), Shape({1, 4, 4, 1}));
  EXPECT_EQ(max_pool2d(x, {1, 2, 0, true}).shape(), Shape({1, 4, 4, 1}));  // no window begins past the end
  EXPECT_THROW(max_pool2d(x, {9, 1, 0}), Error);
  EXPECT_THROW(max_pool2d(Tensor({7, 8}), {}), Error);
}

TEST(Pool2d, AverageDoesNotCountPadding) {
  const Tensor ones = exp(Tensor::zeros({1, 5, 5, 2}));
  for (const double v : values(avg_pool2d(ones, {3, 2, 1}))) EXPECT_NEAR(v, 1, 1e-6);
}

NormState fresh(int64_t channels) {
  return {random_uniform({channels}, 11, 0.5f, 1.5f), random_uniform({channels}, 12),
          random_uniform({channels}, 13, -0.5f, 0.5f), random_uniform({channels}, 14, 0.5f, 2)};
}
NormState with(const NormState& s, const Tensor& gamma, const Tensor& shift) {
  return {gamma, shift, s.running_mean.clone(), s.running_var.clone()};
}
// Small steps, because the ReLUs inside have kinks at unknown points.
constexpr GradCheck kFine{.step = 3e-4f, .tolerance = 2e-2};

TEST(BatchNorm, HasItsGradients) {
  const NormState s = fresh(3);
  for (const bool training : {true, false})
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(text("training ", training, " relu ", relu));
      const Values in{random_normal({4, 3, 2, 3}, 1), s.gamma, s.shift, random_normal({4, 3, 2, 3}, 2)};
      gradcheck(
          [&](const Values& v) {
            return batch_norm(v[0], with(s, v[1], v[2]), {training, relu, {}});
          },
          {in[0], in[1], in[2]}, kFine);
      gradcheck(
          [&](const Values& v) {
            return batch_norm(v[0], with(s, v[1], v[2]), {training, relu, v[3]});
          },
          in, kFine);
      gradcheck(
          [&](const Values& v) {
            return batch_norm(v[0], with(s, v[1], v[2]), {training, relu, v[0]});
          },
          {in[0], in[1], in[2]}, kFine);
    }
}

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

// Two links of 6 channels on images of 4.
std::vector<ConvBnLink> two_links() {
  return {{random_normal({6, 3, 3, 4}, 2, 0.3f), {.padding = 1}, fresh(6)},
          {random_normal({6, 1, 1, 6}, 3, 0.5f), {.stride = 2}, fresh(6)}};
}

TEST(ConvBnChain, IsOneOpAfterAnotherBitForBit) {
  for (const DType t : {kF32, kBF16, kF16})
    for (const bool training : {true, false})
      for (const bool relu : {true, false}) {
        const Tensor x = random_normal({3, 6, 6, 4}, 1, 1, t), add = random_normal({3, 3, 3, 6}, 4, 1, t);
        const std::vector<ConvBnLink> a = two_links(), b = two_links();
        const Tensor dx(x.shape(), t), dw(a[0].w.shape()), other_dx(x.shape(), t), other_dw(dw.shape());
        Tape tape;
        tape.watch(x, dx), tape.watch(a[0].w, dw);
        const Tensor y = conv_bn_chain(x, a, training, relu, [&] { return add; });
        tape.backward(sum(mul(y, add)));
        Tape other;
        other.watch(x, other_dx), other.watch(b[0].w, other_dw);
        const Tensor between = conv_bn(x, b[0].w, b[0].geometry, b[0].norm, {training, true, {}});
        const Tensor want = conv_bn(between, b[1].w, b[1].geometry, b[1].norm, {training, relu, add});
        other.backward(sum(mul(want, add)));
        EXPECT_EQ(values(y), values(want)) << t << training << relu;
        EXPECT_EQ(values(dx), values(other_dx)) << t << training << relu;
        EXPECT_EQ(values(dw), values(other_dw)) << t << training << relu;
        EXPECT_EQ(values(a[1].norm.running_var), values(b[1].norm.running_var));
      }
}

TEST(ConvBnChain, AsksForTheResidualJustBeforeTheLastConvolution) {
  const std::vector<ConvBnLink> links = two_links();
  const Tensor x = random_normal({3, 6, 6, 4}, 1);
  const std::vector<double> first = values(links[0].norm.running_mean),
                            last = values(links[1].norm.running_mean);
  int asked = 0;
  conv_bn_chain(x, links, true, true, [&] {
    ++asked;
    EXPECT_NE(values(links[0].norm.running_mean), first);
    EXPECT_EQ(values(links[1].norm.running_mean), last);
    return random_normal({3, 3, 3, 6}, 4);
  });
  EXPECT_EQ(asked, 1);
  EXPECT_THROW(conv_bn_chain(x, {}, true), Error);
}

TEST(ConvBnChain, IsListedAsItsConvolutions) {
  const Outline outline;
  const Tensor y = conv_bn_chain(random_normal({3, 6, 6, 4}, 1), two_links(), false);
  ASSERT_EQ(outline.steps().size(), 2u);
  EXPECT_EQ(outline.steps()[0].op, "conv_bn");
  EXPECT_EQ(outline.source(y)->op, "conv_bn");
}

}  // namespace
}  // namespace skein
