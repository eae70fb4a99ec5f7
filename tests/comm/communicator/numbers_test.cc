// Arithmetic on what is averaged, in the numbers' own type: f32, and doubles whose bits are an i64 tensor.
#include "comm/communicator/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skein::comm {
namespace {

constexpr double kThird = 1.0 / 3;  // has no float

// The same numbers in both types.
std::vector<Tensor> both(const std::vector<double>& numbers) {
  return {Tensor::of<float>({int64_t(numbers.size())}, {numbers.begin(), numbers.end()}), bits_of(numbers)};
}
std::vector<double> values(const Tensor& x) {
  if (holds_doubles(x)) return numbers_of(x);
  return {x.data<float>(), x.data<float>() + x.size()};
}

TEST(Numbers, ComputeInTheirOwnType) {
  for (const Tensor& x : both({1, -2, 0.5})) {
    const Tensor y = x.clone();
    add_to(y, x);
    EXPECT_EQ(values(y), (std::vector<double>{2, -4, 1}));
    multiply(y, -0.25);
    EXPECT_EQ(values(y), (std::vector<double>{-0.5, 1, -0.25}));
    average_into(y, x);
    EXPECT_EQ(values(y), (std::vector<double>{0.25, -0.5, 0.125}));
    absolute(y, x);
    EXPECT_EQ(values(y), (std::vector<double>{1, 2, 0.5}));
    multiplied(y, 2, x);
    EXPECT_EQ(values(y), (std::vector<double>{2, -4, 1}));
    EXPECT_EQ(sum_of(x), -0.5);
    EXPECT_EQ(largest_of(x), 2);
  }
  const std::vector<Tensor> thirds = both({1});
  multiply(thirds[0], kThird), multiply(thirds[1], kThird);
  EXPECT_EQ(values(thirds[0])[0], double(float(kThird)));
  EXPECT_EQ(values(thirds[1])[0], kThird);
  EXPECT_THROW(average_into(thirds[0], thirds[1]), Error);
}

TEST(Numbers, LongVectorsAreTheSumOfTheirParts) {
  const int64_t n = 100001;
  std::vector<double> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(double(i % 7) - 3);
  for (const Tensor& x : both(numbers)) {
    double sum = 0;
    for (const double v : numbers) sum += v;
    EXPECT_EQ(sum_of(x), sum);
    EXPECT_EQ(largest_of(x), 3);
    const Tensor y = x.clone();
    add_to(y, x);
    EXPECT_EQ(sum_of(y), 2 * sum);
  }
}

TEST(Numbers, PrecisionIsTheStepAfterOne) {
  const std::vector<Tensor> x = both({1});
  EXPECT_EQ(precision_of(x[0]).first, double(std::nextafter(1.f, 2.f) - 1));
  EXPECT_EQ(precision_of(x[1]).first, std::nextafter(1.0, 2) - 1);
}

TEST(Numbers, RowsAreOfOneLength) {
  EXPECT_EQ(rows_of({1, 2, 3, 4, 5, 6}, 3), (std::vector<std::vector<double>>{{1, 2}, {3, 4}, {5, 6}}));
  EXPECT_EQ(rows_of({}, 2), std::vector<std::vector<double>>(2));
  EXPECT_THROW(rows_of({1, 2, 3}, 2), Error);
}

TEST(Distance, IsFromTheMeanOfTheWeightedVector) {
  const std::vector<Tensor> x = both({2, 8, -6}), mean = both({1, 1, -3}), size = both({1, 2, 3});
  for (size_t i : {0, 1}) {  // x / 2 is 1, 4, -3
    const Distance d = distance(x[i], 2, mean[i], size[i]);
    EXPECT_EQ(d.worst, 3);
    EXPECT_EQ(d.relative, 1.5);
    EXPECT_EQ(d.length, 3);
    EXPECT_EQ(distance(x[i], 2, mean[i], {}).relative, 0);
    EXPECT_TRUE(std::isinf(distance(x[i], 2, mean[i], both({1, 0, 1})[i]).relative));
  }
}

TEST(Distance, OfWhatIsNoNumberIsInfiniteAndOfHugeDoublesIsNot) {
  for (size_t i : {0, 1}) EXPECT_TRUE(std::isinf(distance(both({NAN, 1})[i], 1, both({0, 1})[i], {}).worst));
  EXPECT_NEAR(distance(bits_of({3e200, 4e200}), 1, bits_of({0, 0}), {}).length / 5e200, 1, 1e-12);
}

}  // namespace
}  // namespace skein::comm
