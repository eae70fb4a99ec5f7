// The differences by which tests judge: no place of a NaN hides it, or an error beside it.
#include "tests/support/numbers/difference.h"

#include "tests/support/reference.h"

namespace skein {
namespace {
using namespace testing;
using namespace differences;

TEST(Difference, IsTheLargest) {
  EXPECT_EQ(largest_difference(std::vector<float>{1, 2, 3}, std::vector{1., -2., 4.}), 4);
  EXPECT_EQ(largest_difference(std::vector<float>(), std::vector<double>()), 0);
  EXPECT_DOUBLE_EQ(relative_difference({0, 5}, {1, 7}), 2 / 5.);  // the wanted are 5 in the root mean square
  EXPECT_EQ(worse(2, 3), 3);
}

TEST(Difference, OfANaNIsInfiniteWhereverItIs) {
  for (size_t at = 0; at < 3; ++at) {
    const std::vector good{1., 2., 3.};
    std::vector bad = good;
    bad[at] = NAN;
    EXPECT_EQ(largest_difference(bad, good), HUGE_VAL) << at;
    EXPECT_EQ(largest_difference(good, bad), HUGE_VAL) << at;
    EXPECT_EQ(largest_difference(bad, bad), HUGE_VAL) << at;
    EXPECT_EQ(relative_difference(bad, good), HUGE_VAL) << at;
    EXPECT_EQ(relative_difference(good, bad), HUGE_VAL) << at;
    Tensor t({3});
    for (int64_t i = 0; i < 3; ++i) t.data<float>()[i] = float(bad[size_t(i)]);
    EXPECT_EQ(error(t, good), HUGE_VAL) << at;
  }
  EXPECT_EQ(worse(1, NAN), HUGE_VAL);
  EXPECT_EQ(worse(NAN, 1), HUGE_VAL);
}

TEST(Difference, OfVectorsOfTwoLengthsIsInfinite) {
  EXPECT_EQ(largest_difference(std::vector{1., 2.}, std::vector{1.}), HUGE_VAL);
  EXPECT_EQ(relative_difference({}, {1}), HUGE_VAL);
}

}  // namespace
}  // namespace skein
