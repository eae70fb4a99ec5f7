// Reshaping, transposing, padding and joining: where elements go, and their gradients.
#include "tests/engine/ops/op_on_device.h"

namespace skein {
namespace {
using namespace testing;

class Layout : public OpOnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Layout, kDevices, device_name);

TEST_P(Layout, ReshapeSharesMemoryAndWorksOutOneExtent) {
  const Tensor x = there(random_uniform({2, 3, 4}, 1));
  const Tensor y = reshape(x, {-1, 4});
  EXPECT_EQ(y.shape(), Shape({6, 4}));
  EXPECT_EQ(y.raw(), x.raw());
  EXPECT_THROW(reshape(x, {5, -1}), Error);
  EXPECT_THROW(reshape(x, {-1, -1}), Error);
  EXPECT_THROW(reshape(x, {2, 3}), Error);
  check([](const Values& v) { return square(reshape(v[0], {4, -1})); }, {random_uniform({2, 3, 4}, 1)});
}

TEST_P(Layout, TransposePermutesAxes) {
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

TEST_P(Layout, PadAndConcatPlaceWhatTheyAreGiven) {
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

}  // namespace
}  // namespace skein
