// Synthetic images.
#include <cmath>

#include "tests/support/data_files.h"

namespace skein::data {
namespace {

TEST(Synthetic, IsTheSameForASeedAndDiffersByIndexClassAndPart) {
  const ImageSize size{16, 12, 3};
  const auto image = [&](uint64_t seed, bool training, int64_t i) {
    const Split split = open_data("synthetic:16x12x3,classes=4,train=40,test=8", seed);
    Bytes b(16 * 12 * 3);
    EXPECT_TRUE((training ? split.train : split.test)->read(i, View{}, size, b.data()));
    return b;
  };
  EXPECT_EQ(image(1, true, 3), image(1, true, 3));
  EXPECT_NE(image(1, true, 3), image(2, true, 3));
  EXPECT_NE(image(1, true, 3), image(1, true, 7));
  EXPECT_NE(image(1, true, 3), image(1, false, 3));
}

// The class whose mean training image is nearest names most test images right, and the stated mean and
// deviation are about the true ones.
TEST(Synthetic, CanBeLearnedAndIsNormalizedAboutRight) {
  const Split split = open_data("synthetic", 1);
  EXPECT_EQ(split.train->size(), 10000);
  const ImageSize size = split.train->image();
  EXPECT_EQ(size, (ImageSize{32, 32, 3}));
  std::vector<std::vector<double>> means(10, std::vector<double>(3072));
  Bytes b(3072);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(split.train->read(i, View{}, size, b.data()));
    for (size_t p = 0; p < 3072; ++p) {
      means[size_t(split.train->label(i))][p] += b[p] / 30.0;
      sum += b[p] / 255.0, squares += b[p] / 255.0 * b[p] / 255.0;
    }
  }
  const double mean = sum / (300 * 3072);
  EXPECT_NEAR(mean, split.train->mean()[0], 0.03);
  EXPECT_NEAR(std::sqrt(squares / (300 * 3072) - mean * mean), split.train->std()[0], 0.03);
  int right = 0;
  for (int64_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(split.test->read(i, View{}, size, b.data()));
    std::vector<double> distance(10);
    for (size_t c = 0; c < 10; ++c)
      for (size_t p = 0; p < 3072; ++p) distance[c] += (b[p] - means[c][p]) * (b[p] - means[c][p]);
    right += std::min_element(distance.begin(), distance.end()) - distance.begin() == split.test->label(i);
  }
  EXPECT_GT(right, 190);
}

TEST(Synthetic, NamesTheBadPartOfItsSpecification) {
  const auto error = [](const std::string& spec) {
    return message_of<BadOption>([&] { open_data("synthetic:" + spec, 0); });
  };
  expect_says(error("32x32"), {"\"32x32\"", "HxWxC"});
  expect_says(error("32x32x3x1"), {"\"32x32x3x1\""});
  expect_says(error("axbxc"), {"\"a\"", "whole number"});
  expect_says(error("32x32x9"), {"between 1 and 4"});
  expect_says(error("0x32x3"), {"between 1 and 4096"});
  expect_says(error("classes=1"), {"classes=1", "between 2"});
  expect_says(error("train=1e5"), {"train=1e5", "\"1e5\""});
  expect_says(error("8x8x1,clases=3"), {"clases=3", "is not one of"});
  EXPECT_EQ(open_data("synthetic:8x9x1,classes=3,train=5,test=6", 0).test->size(), 6);
  EXPECT_EQ(open_data("synthetic:train=7", 0).train->size(), 7);
}

}  // namespace
}  // namespace skein::data
