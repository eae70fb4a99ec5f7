// The convolution as an operation: its gradients, and the errors of shapes.
#include <gtest/gtest.h>

#include "engine/ops/conv2d.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

struct OpCase {
  Shape x, w;
  ConvGeometry g;
};
const std::vector<OpCase> kConvs{{{2, 5, 6, 3}, {4, 3, 3, 3}, {.stride = 1, .padding = 1}},
                                 {{2, 7, 5, 4}, {6, 3, 3, 2}, {.stride = 2, .padding = 1, .groups = 2}},
                                 {{1, 8, 8, 2}, {3, 3, 2, 2}, {.padding = 2, .dilation = 2}},
                                 {{2, 4, 4, 3}, {5, 1, 1, 3}, {.stride = 2}},
                                 {{1, 6, 6, 4}, {4, 3, 3, 1}, {.padding = 1, .groups = 4}}};

TEST(Conv2d, HasItsGradients) {
  for (const OpCase& c : kConvs) {
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
  for (const OpCase& c : {OpCase{{1, 4, 4, 3}, {2, 3, 3, 2}, {}}, OpCase{{1, 4, 4, 3}, {2, 5, 5, 3}, {}},
                          OpCase{{1, 4, 4, 4}, {3, 3, 3, 2}, {.groups = 2}},
                          OpCase{{1, 4, 4, 3}, {0, 3, 3, 3}, {}}, OpCase{{1, 4, 4, 3}, {2, 0, 3, 3}, {}}}) {
    try {
      conv2d(Tensor(c.x), Tensor(c.w), {}, c.g);
      FAIL() << "no error for " << c.x << c.w;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(text(c.x)), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(text(c.w)), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace skein
