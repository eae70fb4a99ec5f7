// Shapes, windows, copies.
#include "engine/tensor.h"

#include <algorithm>
#include <cstring>

#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

TEST(Shape, HasAtMostSixAxesOfNonNegativeExtent) {
  EXPECT_EQ(Shape({2, 3, 4}).volume(), 24);
  EXPECT_EQ(Shape().volume(), 1);
  EXPECT_EQ(text(Shape{1, 2}), "[1,2]");
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW(Shape({-2}), Error);
  EXPECT_THROW(Tensor({-1, 3}), Error);
  EXPECT_THROW(Tensor({-1, -1}), Error);
}

TEST(Tensor, CopiesShareAndViewsAreNewValues) {
  const Tensor x = random_uniform({4, 3}, 1), same = x, window = x.view({2, 3}, 6);
  EXPECT_EQ(same.id(), x.id());
  EXPECT_NE(window.id(), x.id());
  window.data<float>()[0] = 42;
  EXPECT_EQ(x.data<float>()[6], 42);
  const Tensor own = x.clone();
  own.data<float>()[0] = 43;
  EXPECT_NE(x.data<float>()[0], 43);
}

TEST(Tensor, ViewsOutOfRangeThrow) {
  const Tensor x({4, 3});
  EXPECT_THROW(x.view({13}), Error);
  EXPECT_THROW(x.view({2}, 11), Error);
  EXPECT_THROW(x.view({2}, -1), Error);
  EXPECT_THROW(x.view({-1}), Error);
  EXPECT_THROW(x.view({6}, 6).view({7}), Error);  // the limit is the window, not the storage
  EXPECT_NO_THROW(x.view({0}, 12));
}

TEST(Tensor, TypesAndSizesAreChecked) {
  const Tensor x({2}, kBF16);
  EXPECT_THROW(x.data<float>(), Error);
  EXPECT_THROW(Tensor({2}).item(), Error);
  EXPECT_THROW(copy_bytes(Tensor({2}), Tensor({3})), Error);
  EXPECT_THROW(Tensor({100}, kF32, std::make_shared<Storage>(8, allocator(kCpu))), Error);
  EXPECT_EQ(Tensor::zeros({1}, kBF16).item(), 0);
  EXPECT_FALSE(Tensor());
}

// Whole lines of the caches go past them, and what is left of a line at either end does not.
TEST(Tensor, CopiesAsideWhateverItsPlaceAndLength) {
  constexpr int64_t kRoom = 3 << 20;  // by a team, too: it is f32
  const Tensor x = random_uniform({kRoom}, 1);
  for (const int64_t first : {0, 1, 15, 16})
    for (const int64_t n : {int64_t(0), int64_t(5), int64_t(16383), int64_t(16401), kRoom - 40}) {
      const Tensor y = Tensor::zeros({kRoom});
      const Tensor part = y.view({n}, first), source = x.view({n}, 17);
      copy_aside(part, source);
      ASSERT_EQ(std::memcmp(part.address(), source.address(), size_t(n) * sizeof(float)), 0)
          << first << ' ' << n;
      const float* const all = y.data<float>();
      ASSERT_TRUE(std::all_of(all, all + first, [](float v) { return v == 0; })) << first << ' ' << n;
      ASSERT_TRUE(std::all_of(all + first + n, all + kRoom, [](float v) { return v == 0; }))
          << first << ' ' << n;
    }
  EXPECT_THROW(copy_aside(Tensor({2}), Tensor({3})), Error);
}

TEST(Tensor, GoesToADeviceAndBack) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
  const Tensor x = random_uniform({1000}, 1);
  EXPECT_TRUE(allclose(x.to(kFirstGpu), x));
  EXPECT_EQ(Tensor::zeros({1}, kF32, kFirstGpu).item(), 0);
}

}  // namespace
}  // namespace skein
