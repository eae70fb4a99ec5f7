// Sums, means and maxima over axes: their values by plain loops in double, their shapes, their gradients.
#include "engine/ops/reduce.h"

#include "tests/engine/ops/op_on_device.h"

namespace skein {
namespace {
using namespace testing;

class Reduce : public OpOnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Reduce, kDevices, device_name);

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

TEST_P(Reduce, SumOverEverySetOfAxesAgreesWithPlainLoops) {
  for (const Shape& s : {Shape{3, 5, 2, 7}, Shape{2, 1, 300, 3}, Shape{4, 3, 1, 1}})
    for (unsigned bits = 1; bits < 16; ++bits) {
      const Tensor x = random_uniform(s, bits);
      EXPECT_TRUE(allclose(sum(there(x), axes_of(bits)), plain_sum(x, bits))) << s << " axes " << bits;
    }
}

TEST_P(Reduce, LongSumsKeepTheirAccuracy) {
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

TEST_P(Reduce, KeepLeavesExtentsOfOneAndNegativeAxesCountFromTheEnd) {
  const Tensor x = there(random_uniform({2, 3, 4}, 1));
  EXPECT_EQ(sum(x, {-1}).shape(), Shape({2, 3}));
  EXPECT_EQ(sum(x, {1}, true).shape(), Shape({2, 1, 4}));
  EXPECT_EQ(max(x, {0, -1}).shape(), Shape({3}));
  EXPECT_EQ(mean(x).shape(), Shape());
  EXPECT_THROW(sum(x, {3}), Error);
}

TEST_P(Reduce, ReductionGradients) {
  for (unsigned bits = 1; bits < 16; ++bits) {
    check([&](const Values& v) { return sum(v[0], axes_of(bits)); }, {random_uniform({3, 2, 4, 2}, 1)});
    check([&](const Values& v) { return mean(v[0], axes_of(bits), true); },
          {random_uniform({3, 2, 4, 2}, 1)});
    check([&](const Values& v) { return max(v[0], axes_of(bits)); }, {distinct({3, 2, 4, 2}, 1)});
  }
}

}  // namespace
}  // namespace skein
