// Maxima: the largest element, its index, and the one element that gets the gradient.
#include <limits>

#include "tests/engine/ops/op_on_device.h"

namespace skein {
namespace {
using namespace testing;

class Maximum : public OpOnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Maximum, kDevices, device_name);

TEST_P(Maximum, MaxIsTheLargestAndItsGradientGoesToTheFirst) {
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

}  // namespace
}  // namespace skein
