// Layers: their statistics, dropout by channel, adaptive pooling.
#include "nn/layers.h"

#include <gtest/gtest.h>

#include "engine/vectors/vec.h"
#include "nn/vgg.h"
#include "tests/support/images.h"

namespace skein::nn {
namespace {

TEST(ConvBn, ABiasBeforeTheNormMovesOnlyTheRunningMean) {
  const ConvSpec spec{.in = 3, .out = 4, .padding = 1, .bias = true};
  ConvBn biased("c", "n", spec);
  initialize(biased, 1);
  Tensor bias, mean, variance;
  for (Param* p : biased.params())
    if (p->name == "c.bias") bias = p->value;
  for (Buffer* b : biased.buffers()) (b->name == "n.running_mean" ? mean : variance) = b->value;
  const Tensor x = random_image({8, 6, 6, 3});
  const Tensor plain = biased.forward(x).clone(), plain_mean = mean.clone(),
               plain_variance = variance.clone();

  initialize(biased, 1);
  fill(bias, 5.f);
  EXPECT_EQ(distance(biased.forward(x), plain), 0);
  EXPECT_EQ(distance(variance, plain_variance), 0);
  for (int c = 0; c < 4; ++c) EXPECT_NEAR(mean.data<float>()[c], plain_mean.data<float>()[c] + 0.5f, 1e-5);

  biased.set_training(false);  // in evaluation the two separate operations are the reference
  Tensor weight, gamma, shift;
  for (Param* p : biased.params())
    (p->name == "c.weight"   ? weight
     : p->name == "n.weight" ? gamma
     : p->name == "n.bias"   ? shift
                             : bias) = p->value;
  const Tensor y = batch_norm(conv2d(x, weight, bias, {.padding = 1}), {gamma, shift, mean, variance},
                              {.training = false, .relu = true});
  EXPECT_LT(distance(biased.forward(x), y), 1e-4 * norm(y));
}

TEST(Dropout, OfChannelsDropsWholeChannels) {
  Dropout d(0.5f, Dropout::Of::kChannels);
  const Tensor ones({4, 3, 5, 16});
  fill(ones, 1.f);
  const RandomScope scope(1, 0, 0);
  const Tensor y = d.forward(ones);
  int dropped = 0;
  for (int n = 0; n < 4; ++n)
    for (int c = 0; c < 16; ++c) {
      const float first = y.data<float>()[n * 15 * 16 + c];
      EXPECT_TRUE(first == 0 || first == 2) << first;
      dropped += first == 0;
      for (int p = 0; p < 15; ++p) EXPECT_EQ(y.data<float>()[(n * 15 + p) * 16 + c], first);
    }
  EXPECT_GT(dropped, 16);
  EXPECT_LT(dropped, 48);
  d.set_training(false);
  EXPECT_EQ(distance(d.forward(ones), ones), 0);
}

TEST(AdaptivePool, AveragesTorchvisionsWindowsForAnyMap) {
  for (const auto& [h, w] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 2}, {7, 7}, {14, 14}, {5, 9}, {15, 8}}) {
    const Tensor x = random_image({2, h, w, 3}), y = adaptive_avg_pool(x, 7);
    ASSERT_EQ(y.shape(), (Shape{2, 7, 7, 3}));
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t p = 0; p < 7; ++p)
        for (int64_t q = 0; q < 7; ++q)
          for (int64_t c = 0; c < 3; ++c) {
            double sum = 0, count = 0;
            for (int64_t r = p * h / 7; r < (p + 1) * double(h) / 7; ++r)
              for (int64_t s = q * w / 7; s < (q + 1) * double(w) / 7; ++s, ++count)
                sum += x.data<float>()[((n * h + r) * w + s) * 3 + c];
            EXPECT_NEAR(y.data<float>()[((n * 7 + p) * 7 + q) * 3 + c], sum / count, 1e-5) << h << 'x' << w;
          }
  }
}

}  // namespace
}  // namespace skein::nn
