// When it is worth it to fuse operations into a convolution.
#include "engine/cuda/conv/conv_worth.h"

#include <gtest/gtest.h>

#include "tests/cuda/conv_shapes.h"

namespace skein::cuda {
namespace {
using namespace testing;

TEST(WorthFusing, WhatIsBoundByMemoryIsAndWhatIsBoundByProductsIsNot) {
  EXPECT_EQ(worth_fusing(fused(kWiden, kSums, kBF16)), Worth::kEvenIfCompiled);
  EXPECT_EQ(worth_fusing(fused(kNarrow, kFolded, kBF16)), Worth::kEvenIfCompiled);
  EXPECT_EQ(worth_fusing(fused(kDeep, kSums, kBF16)), Worth::kNo);
  EXPECT_EQ(worth_fusing(fused(kSquare, kSums, kBF16)), Worth::kNo);
}
TEST(WorthFusing, ASmallImageIsNotWorthACompilation) {
  EXPECT_EQ(worth_fusing(fused(kCifar, kSums, kBF16, 16)), Worth::kIfReady);
  EXPECT_EQ(worth_fusing(fused(kWiden, kFolded, kBF16, 2)), Worth::kIfReady);
}
TEST(WorthFusing, PixelsOfFewChannelsAreNotGivenToAFusedEngineUnmeasured) {
  for (const DType t : {kF16, kBF16})
    for (const unsigned what : {unsigned(kSums), unsigned(kFolded), unsigned(kFoldedTail)})
      EXPECT_EQ(worth_fusing(fused({224, 3, 64, 7, 2}, what, t)), Worth::kNo) << t << ' ' << what;
  EXPECT_NE(worth_fusing(fused({112, 8, 64, 1, 1}, kSums, kF16)), Worth::kNo);
  EXPECT_EQ(worth_fusing(fused({112, 7, 64, 1, 1}, kSums, kF16)), Worth::kNo);
}
TEST(WorthFusing, ANormIsLeftToAConvolutionThatWaitsForMemoryAnyway) {
  for (const auto& [pass, what] : kOfAChain) {
    EXPECT_EQ(worth_fusing(fused(kWiden, what, kF16, 256, pass)), Worth::kIfReady) << int(pass);
    EXPECT_EQ(worth_fusing(fused(kDeep, what, kF16, 256, pass)), Worth::kNo) << int(pass);
    EXPECT_EQ(worth_fusing(fused(kCifar, what, kF16, 16, pass)), Worth::kIfReady) << int(pass);
  }
}
// Otherwise the image would be computed again for it, and no pass would be saved.
TEST(WorthFusing, ForwardLeavesANormOnlyToAConvolutionWhoseWeightsGradientTakesItToo) {
  int forward = 0, weights = 0;
  for (const int64_t channels : {8, 16, 24, 32, 64, 128, 256, 512})
    for (const int64_t out : {32, 64, 256})
      for (const unsigned more : {0u, unsigned(kSums)}) {
        const Layer l{28, channels, out, 3, 1};
        const auto worth = [&](ConvPass pass, unsigned what) {
          return worth_fusing(fused(l, what, kF16, 256, pass)) != Worth::kNo;
        };
        const bool f = worth(ConvPass::kForward, kNormalize | more),
                   w = worth(ConvPass::kWeights, kNormalize);
        EXPECT_TRUE(!f || w) << channels << ' ' << out;
        forward += f, weights += w;
      }
  EXPECT_GT(forward, 0);
  EXPECT_GT(weights, forward);
}
TEST(WorthFusing, NothingToFuseIsWorthNothing) {
  EXPECT_EQ(worth_fusing(fused(kWiden, 0, kBF16)), Worth::kNo);
}

}  // namespace
}  // namespace skein::cuda
