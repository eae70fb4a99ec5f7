// The layout of weights in files: torchvision's, from ours and back.
#include "nn/file_layout.h"

#include <gtest/gtest.h>

#include "engine/vectors/vec.h"
#include "nn/layers.h"
#include "nn/models.h"
#include "tests/support/images.h"

namespace skein::nn {
namespace {

Tensor counting(Shape s) {
  Tensor t(s);
  for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] = float(i);
  return t;
}

TEST(FileLayout, ConvolutionGoesFromOhwiToOihwAndBack) {
  Conv2d conv({.in = 2, .out = 3, .kernel = 5});
  Param& p = *conv.params()[0];
  const Tensor ours = counting({3, 5, 5, 2}), file = to_file(p, ours);
  ASSERT_EQ(file.shape(), (Shape{3, 2, 5, 5}));
  for (int o = 0; o < 3; ++o)
    for (int i = 0; i < 2; ++i)
      for (int r = 0; r < 5; ++r)
        for (int s = 0; s < 5; ++s)
          EXPECT_EQ(file.data<float>()[((o * 2 + i) * 5 + r) * 5 + s], float(((o * 5 + r) * 5 + s) * 2 + i));
  const Tensor back(ours.shape());
  from_file(p, file, back);
  EXPECT_EQ(distance(back, ours), 0);
}

// The same linear layer computed as torchvision does, over C H W. Fails if the two
// orders are confused anywhere.
TEST(FileLayout, FirstLinearAfterAMapReadsChannelsFirstInAFile) {
  constexpr int64_t kH = 2, kW = 3, kC = 5, kOut = 4;
  Linear fc(kH * kW * kC, kOut);
  fc.from_map(kH, kW, kC);
  initialize(fc, 1);
  Param& p = *fc.params()[0];
  const Tensor x = random_image({1, kH, kW, kC}), y = fc.forward(flatten_map(x)), file = to_file(p, p.value);
  ASSERT_EQ(file.shape(), (Shape{kOut, kC * kH * kW}));
  EXPECT_GT(distance(file, p.value), 0.1);
  for (int64_t o = 0; o < kOut; ++o) {
    double sum = fc.params()[1]->value.data<float>()[o];
    for (int64_t c = 0; c < kC; ++c)
      for (int64_t h = 0; h < kH; ++h)
        for (int64_t w = 0; w < kW; ++w)
          sum += double(file.data<float>()[((o * kC + c) * kH + h) * kW + w]) *
                 x.data<float>()[(h * kW + w) * kC + c];
    EXPECT_NEAR(y.data<float>()[o], sum, 1e-5);
  }
  const Tensor back(p.value.shape());
  from_file(p, file, back);
  EXPECT_EQ(distance(back, p.value), 0);
}

TEST(FileLayout, EveryFirstLinearAfterAMapIsMarked) {
  for (const ModelRow& row : models()) {
    const int64_t side = std::max<int64_t>(row.smallest_size, 28);
    const auto m = row.make({side, side, 3, 10});
    int marked = 0;
    for (Param* p : m->params()) marked += p->file == FileLayout::kLinearFromMap;
    EXPECT_EQ(marked,
              std::string(row.name).starts_with("resnet") || std::string(row.name) == "small-cnn" ? 0 : 1)
        << row.name;
  }
}

}  // namespace
}  // namespace skein::nn
