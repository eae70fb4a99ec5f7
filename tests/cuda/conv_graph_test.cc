// Asks cuDNN for the fusions that the code uses, for a described H200: a few here, all in fusion_sweep_test.
#include "engine/cuda/conv/conv_graph.h"

#include <gtest/gtest.h>

#include "engine/cuda/conv/conv_plan.h"
#include "tests/cuda/conv_shapes.h"
#include "tests/support/files.h"

namespace skein::cuda {
namespace {
using namespace testing;

std::vector<ConvPlan> on_paper(const ConvProblem& k, size_t at_most = 1) {
  return conv_plans(h200(), k, {.at_most = at_most, .unloaded = true});
}

// Whether cuDNN refuses the graph or has no engine for it.
bool none_for(const ConvProblem& k) {
  try {
    return on_paper(k).empty();
  } catch (const Error&) { return true; }
}

// A plan that is compiled at run time takes a second, so each pattern is tested once, in alternating types.
TEST(CudnnFusions, SumsComeWithTheConvolution) {
  for (const Layer& l : {kWiden, kStrided, kCifar}) {
    const std::vector<ConvPlan> plans = on_paper(fused(l, kSums, kF16));
    ASSERT_EQ(plans.size(), 1u) << fused(l, kSums, kF16);
    EXPECT_FALSE(plans[0].compiled) << plans[0].name;
  }
  EXPECT_EQ(on_paper(fused(kWiden, kSums, kBF16)).size(), 1u);
}
TEST(CudnnFusions, AFoldedNormTheResidualAndTheReluComeWithTheConvolution) {
  const std::pair<unsigned, DType> patterns[] = {
      {kBias, kBF16}, {kBias | kResidual, kF16}, {kFolded, kF16}, {kFoldedTail, kBF16}};
  for (const auto& [what, t] : patterns) {
    const std::vector<ConvPlan> plans = on_paper(fused(kSquare, what, t));
    ASSERT_EQ(plans.size(), 1u) << fused(kSquare, what, t);
    EXPECT_TRUE(plans[0].compiled);
    EXPECT_NE(plans[0].name.find("compiled at run time"), std::string::npos) << plans[0].name;
  }
}

TEST(CudnnFusions, AKernelThatWouldBeCompiledAtRunTimeCanBeDeclined) {
  const PlanWish ready{.at_most = 2, .compiled = false, .unloaded = true};
  EXPECT_TRUE(conv_plans(h200(), fused(kSquare, kFolded, kBF16), ready).empty());
  for (const ConvPlan& p : conv_plans(h200(), fused(kWiden, kSums, kF16), ready))
    EXPECT_FALSE(p.compiled) << p.name;
}

// What a chain of convolutions asks for is ready only in f16, which is why only f16 uses it.
TEST(CudnnFusions, ANormBetweenConvolutionsIsLeftToTheirMainLoopsInHalfPrecision) {
  for (const Layer& l : {kWiden, kStrided, kSquare, kCifar})
    for (const auto& [pass, what] : kOfAChain) {
      const ConvProblem k = fused(l, what, kF16, 256, pass);
      const std::vector<ConvPlan> plans = on_paper(k);
      ASSERT_EQ(plans.size(), 1u) << k;
      EXPECT_FALSE(plans[0].compiled) << k << ": " << plans[0].name;
    }
  EXPECT_TRUE(none_for(fused(kWiden, kNormalize, kBF16, 256, ConvPass::kWeights)));
  EXPECT_TRUE(none_for(fused(kWiden, kNormGradient, kBF16, 256, ConvPass::kData)));
}

TEST(CudnnFusions, AGradientTakesOnlyWhatBelongsToIt) {
  for (const auto& [pass, what] : {std::pair{ConvPass::kData, unsigned(kSums)},
                                   {ConvPass::kData, kNormalize},
                                   {ConvPass::kWeights, kNormGradient},
                                   {ConvPass::kWeights, kRelu},
                                   {ConvPass::kForward, kNormGradient}})
    EXPECT_THROW(graph_of(fused(kSquare, what, kF16, 8, pass)), Error) << int(pass) << ' ' << what;
  ConvProblem adding = fused(kSquare, kNormalize, kF16, 8, ConvPass::kWeights);
  adding.accumulate = true;
  EXPECT_THROW(graph_of(adding), Error);
}

TEST(CudnnFusions, AProblemIsNamedWithWhatIsFused) {
  EXPECT_NE(text(fused(kSquare, kFoldedTail, kBF16)).find("+ bias + residual + relu"), std::string::npos);
  EXPECT_NE(text(fused(kSquare, kSums, kBF16)), text(fused(kSquare, 0, kBF16)));
  for (const auto& [pass, what] : kOfAChain)
    EXPECT_NE(text(fused(kSquare, what, kF16, 8, pass)), text(fused(kSquare, 0, kF16, 8, pass)));
}

}  // namespace
}  // namespace skein::cuda
