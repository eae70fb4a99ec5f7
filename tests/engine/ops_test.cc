// Reductions, softmax, layout, dropout: values against a few plain lines, gradients against differences.
#include <limits>

#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

class Ops : public OnDevice {
 protected:
  Tensor there(const Tensor& x) const { return x.to(GetParam()); }
  void check(const Function& f, const Values& in, float step = 1e-2f) const {
    gradcheck(f, in, {.step = step, .device = GetParam()});
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Ops, kDevices, device_name);

// x summed over the axes marked in `bits`, in double.
std::vector<double> plain_sum(const Tensor& x, unsigned bits) {
  const std::vector<double> v = values(x);
  int64_t n = 1;
  for (int k = 0; k < x.rank(); ++k) n *= bits >> k & 1 ? 1 : x.shape()[k];
  std::vector<double> y(size_t(n), 0.0);
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t at = 0, step = 1, rest = i;
    for (int k = x.rank() - 1; k >= 0; --k) {
      if (!(bits >> k & 1)) at += rest % x.shape()[k] * step, step *= x.shape()[k];
      rest /= x.shape()[k];
    }
    y[size_t(at)] += v[size_t(i)];
  }
  return y;
}

std::vector<int> axes_of(unsigned bits) {
  std::vector<int> axes;
  for (int k = 0; k < 6; ++k)
    if (bits >> k & 1) axes.push_back(k);
  return axes;
}

TEST_P(Ops, SumOverEverySetOfAxesAgreesWithPlainLoops) {
  for (const Shape& s : {Shape{3, 5, 2, 7}, Shape{2, 1, 300, 3}, Shape{4, 3, 1, 1}})
    for (unsigned bits = 1; bits < 16; ++bits) {
      const Tensor x = random_uniform(s, bits);
      EXPECT_TRUE(allclose(sum(there(x), axes_of(bits)), plain_sum(x, bits))) << s << " axes " << bits;
    }
}

TEST_P(Ops, LongSumsKeepTheirAccuracy) {
  for (const Shape& s : {Shape{1000003}, Shape{50000, 8}, Shape{70, 9001}, Shape{3, 5000, 300}})
    for (int axis = 0; axis < s.rank(); ++axis) {
      const Tensor x = random_uniform(s, 3, 0, 1);
      EXPECT_TRUE(allclose(sum(there(x), {axis}), plain_sum(x, 1u << axis))) << s << " axis " << axis;
    }
  for (const DType t : {kBF16, kF16}) {
    const Tensor low = random_uniform({64, 100, 32}, 3, 0, 1, t);
    EXPECT_TRUE(allclose(sum(there(low), {1}), plain_sum(low, 2))) << t;
  }
}

TEST_P(Ops, KeepLeavesExtentsOfOneAndNegativeAxesCountFromTheEnd) {
  const Tensor x = there(random_uniform({2, 3, 4}, 1));
  EXPECT_EQ(sum(x, {-1}).shape(), Shape({2, 3}));
  EXPECT_EQ(sum(x, {1}, true).shape(), Shape({2, 1, 4}));
  EXPECT_EQ(max(x, {0, -1}).shape(), Shape({3}));
  EXPECT_EQ(mean(x).shape(), Shape());
  EXPECT_THROW(sum(x, {3}), Error);
}

TEST_P(Ops, ReductionGradients) {
  for (unsigned bits = 1; bits < 16; ++bits) {
    check([&](const Values& v) { return sum(v[0], axes_of(bits)); }, {random_uniform({3, 2, 4, 2}, 1)});
    check([&](const Values& v) { return mean(v[0], axes_of(bits), true); },
          {random_uniform({3, 2, 4, 2}, 1)});
    check([&](const Values& v) { return max(v[0], axes_of(bits)); }, {distinct({3, 2, 4, 2}, 1)});
  }
}

TEST_P(Ops, MaxIsTheLargestAndItsGradientGoesToTheFirst) {
  const Tensor x = there(Tensor::of({2, 4}, std::vector<float>{1, 7, 7, 3, -2, -5, -2, -9}));
  EXPECT_TRUE(allclose(max(x, {1}), std::vector<double>{7, -2}));
  EXPECT_EQ(values(argmax(x, 1)), (std::vector<double>{1, 0}));
  EXPECT_EQ(values(argmax(x, 0)), (std::vector<double>{0, 0, 0, 0}));
  const Tensor ones = there(Tensor::of({2}, std::vector<float>{1, 1}));
  EXPECT_EQ(values(gradients([](const Values& v) { return max(v[0], {1}); }, {x}, ones)[0]),
            (std::vector<double>{0, 1, 0, 0, 1, 0, 0, 0}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(max(there(Tensor::of({3}, std::vector{1.f, nan, 2.f}))).item()));
}

TEST_P(Ops, LogSoftmaxSumsToOneAndHasItsGradient) {
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

TEST_P(Ops, CrossEntropyIsItsDefinition) {
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

TEST_P(Ops, CrossEntropyOfUnmarkedRowsAloneIsZeroAndMovesNothing) {
  const Tensor logits = there(random_uniform({3, 4}, 1)),
               labels = there(Tensor::of({3}, std::vector<int32_t>{-1, -1, -1}));
  const Function f = [&](const Values& v) { return cross_entropy(v[0], labels); };
  EXPECT_EQ(f({logits}).item(), 0.f);
  const Tensor one = there(Tensor::of({1}, std::vector{1.f}));
  for (const double g : values(gradients(f, {logits}, one)[0])) EXPECT_EQ(g, 0);
}

TEST(OpsErrors, ALabelOutOfRangeIsNamed) {
  try {
    cross_entropy(Tensor::zeros({2, 4}), Tensor::of({2}, std::vector<int32_t>{1, 4}));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("label 4 of row 1"), std::string::npos) << e.what();
  }
}

TEST_P(Ops, TopKHitsCountsTiesAgainstTheLabel) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x =
      there(Tensor::of({5, 3}, std::vector<float>{1, 2, 3, 2, 2, 1, 2, 2, 1, 5, 6, 7, nan, nan, nan}));
  const Tensor labels = there(Tensor::of({5}, std::vector<int32_t>{1, 0, 1, -1, 0}));
  EXPECT_EQ(values(top_k_hits(x, labels, 1)), (std::vector<double>{1, 4}));  // only row 1
  EXPECT_EQ(values(top_k_hits(x, labels, 2)), (std::vector<double>{3, 4}));
  EXPECT_EQ(values(top_k_hits(x, labels, 5)), (std::vector<double>{3, 4}));  // more than there are classes
}

TEST_P(Ops, ReshapeSharesMemoryAndWorksOutOneExtent) {
  const Tensor x = there(random_uniform({2, 3, 4}, 1));
  const Tensor y = reshape(x, {-1, 4});
  EXPECT_EQ(y.shape(), Shape({6, 4}));
  EXPECT_EQ(y.raw(), x.raw());
  EXPECT_THROW(reshape(x, {5, -1}), Error);
  EXPECT_THROW(reshape(x, {-1, -1}), Error);
  EXPECT_THROW(reshape(x, {2, 3}), Error);
  check([](const Values& v) { return square(reshape(v[0], {4, -1})); }, {random_uniform({2, 3, 4}, 1)});
}

TEST_P(Ops, TransposePermutesAxes) {
  const Tensor x = random_uniform({2, 3, 4, 5}, 1), y = transpose(there(x), {2, 0, 3, 1});
  ASSERT_EQ(y.shape(), Shape({4, 2, 5, 3}));
  std::vector<double> want;
  for (int64_t c = 0; c < 4; ++c)
    for (int64_t a = 0; a < 2; ++a)
      for (int64_t d = 0; d < 5; ++d)
        for (int64_t b = 0; b < 3; ++b) want.push_back(x.data<float>()[((a * 3 + b) * 4 + c) * 5 + d]);
  EXPECT_EQ(values(y), want);
  EXPECT_EQ(values(transpose(y, {1, 3, 0, 2})), values(x));
  EXPECT_THROW(transpose(x, {0, 0, 1, 2}), Error);
  check(
      [](const Values& v) {
        return mul(transpose(v[0], {1, 0}), v[1]);
      },
      {random_uniform({3, 4}, 1), random_uniform({4, 3}, 2)});
  check([](const Values& v) { return mul(transpose(v[0], {1, 0}), v[0]); }, {random_uniform({3, 3}, 1)});
}

TEST_P(Ops, PadAndConcatPlaceWhatTheyAreGiven) {
  const Tensor x = Tensor::of({2, 2}, std::vector<float>{1, 2, 3, 4});
  EXPECT_EQ(values(pad(there(x), {{1, 0}, {0, 2}})),
            (std::vector<double>{0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0}));
  EXPECT_EQ(values(concat({there(x), there(x)}, 0)), (std::vector<double>{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(values(concat({there(x), there(x)}, -1)), (std::vector<double>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_THROW(concat({x, Tensor({3, 3})}, 0), Error);
  check(
      [](const Values& v) {
        return square(pad(v[0], {{1, 2}, {0, 1}, {2, 0}}));
      },
      {random_uniform({2, 3, 2}, 1)});
  check(
      [](const Values& v) {
        return square(concat({v[0], v[1], v[0]}, 1));
      },
      {random_uniform({2, 3, 2}, 1), random_uniform({2, 1, 2}, 2)});
}

TEST_P(Ops, CastRoundsAndPassesTheGradientOn) {
  const Tensor x = there(random_uniform({100}, 1));
  for (const DType t : {kBF16, kF16}) EXPECT_TRUE(allclose(cast(x, t), x)) << t;
  EXPECT_EQ(cast(x, kF32).id(), x.id());
  const Tensor w = there(random_uniform({100}, 2));
  for (const DType t : {kBF16, kF16})
    EXPECT_TRUE(allclose(values(gradients([t](const Values& v) { return cast(v[0], t); }, {x}, w)[0]),
                         values(w), tolerance(t)));
}

TEST_P(Ops, NormalizeImageScalesBytesPerChannel) {
  std::vector<uint8_t> bytes(2 * 2 * 2 * 3);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * 11);
  const std::vector<float> mean{0.4f, 0.5f, 0.6f}, std{0.2f, 0.3f, 0.25f};
  std::vector<double> want;
  for (size_t i = 0; i < bytes.size(); ++i) want.push_back((bytes[i] / 255.0 - mean[i % 3]) / std[i % 3]);
  const Tensor x = there(Tensor::of({2, 2, 2, 3}, bytes));
  EXPECT_TRUE(allclose(normalize_image(x, mean, std, kF32), want));
  for (const DType t : {kBF16, kF16}) EXPECT_TRUE(allclose(normalize_image(x, mean, std, t), want)) << t;
  EXPECT_THROW(normalize_image(x, {0.5f}, {0.5f}, kF32), Error);
}

TEST_P(Ops, DropoutIsAFunctionOfItsDraw) {
  const Draw d{42, Purpose::kDropout, 7, 3};
  const float p = 0.3f;
  const Tensor x = random_off_zero({1003}, 1);
  std::vector<double> want;
  for (int64_t i = 0; i < x.size(); ++i)
    want.push_back(d.unit(uint64_t(i)) >= p ? double(x.data<float>()[i]) / (1 - double(p)) : 0.0);
  EXPECT_TRUE(allclose(dropout(there(x), p, d), want));
  EXPECT_GT(std::count(want.begin(), want.end(), 0.0), 250);
  EXPECT_LT(std::count(want.begin(), want.end(), 0.0), 350);
  EXPECT_EQ(dropout(x, 0, d).id(), x.id());
  EXPECT_THROW(dropout(x, 1, d), Error);
  check([&](const Values& v) { return dropout(v[0], p, d); }, {x});
}

// ---- what a forward pass keeps for backward --------------------------------------------------------

// A tape that wants the gradient of an image of 1 MiB. The image stays in memory only if an op keeps it.
struct Kept {
  const Device d;
  const Tensor leaf = Tensor::zeros({1, 128, 256, 16}, kF32, d), grad = leaf.clone();
  const int64_t image = leaf.size() * 2;
  Tape tape;
  explicit Kept(Device d) : d(d) { tape.watch(leaf, grad); }
  template <class F>
  int64_t by(F f) const {
    const int64_t before = memory_use(d).now;
    f(cast(leaf, kBF16));
    return memory_use(d).now - before;
  }
};

TEST_P(Ops, PoolsAndMeansKeepNoImages) {
  const Kept kept(GetParam());
  const int64_t places = kept.image / 8;  // of the maxima: a byte for every fourth pixel of 16 bits
  EXPECT_EQ(kept.by([](const Tensor& x) { max_pool2d(x, {}); }), places);
  EXPECT_EQ(kept.by([](const Tensor& x) { avg_pool2d(x, {}); }), 0);
  EXPECT_EQ(kept.by([](const Tensor& x) { global_avg_pool(x); }), 0);
}

TEST_P(Ops, ANormKeepsNoImageButItsInput) {
  const Kept kept(GetParam());
  const auto channels = [&](float v) {
    const Tensor t({16}, kF32, GetParam());
    fill(t, v);
    return t;
  };
  const NormState s{channels(1), channels(0), channels(0), channels(1)};
  const Tensor w = Tensor::zeros({16, 1, 1, 16}, kF32, GetParam());
  const int64_t small = 4096;  // the channels' statistics
  for (const bool relu : {false, true}) {
    const NormMode mode{.training = true, .relu = relu};
    EXPECT_LT(kept.by([&](const Tensor& x) { batch_norm(x, s, mode); }), kept.image + small);
    EXPECT_LT(kept.by([&](const Tensor& x) { conv_bn(x, w, {}, s, mode); }), 2 * kept.image + small);
  }
  const auto add = [&](bool relu) {
    return kept.by([&](const Tensor& x) {
      const NormMode mode{.training = true, .relu = relu, .residual = cast(kept.leaf, kBF16)};
      conv_bn(x, w, {}, s, mode);
    });
  };
  EXPECT_LT(add(false), 2 * kept.image + small);
  if (GetParam().is_cuda()) {
    EXPECT_LT(add(true), 2 * kept.image + kept.image / 16 + small);
  }  // includes the mask's bits
}

}  // namespace
}  // namespace skein
