// Asks cuDNN for the fusions that the code uses, for a described H200; and tests when they are worth it. This
// covers a few shapes, fusion_sweep_test all.
#include <gtest/gtest.h>

#include "engine/cuda/conv/conv_plan.h"
#include "engine/cuda/conv/conv_worth.h"
#include "tests/cuda/conv_shapes.h"
#include "tests/support/files.h"

namespace skein::cuda {
namespace {
using namespace testing;

const Descriptor& h200() {
  static const Descriptor d = h200_on_paper();
  return d;
}

const Layer kWiden{56, 64, 256, 1, 1}, kNarrow{28, 512, 128, 1, 1}, kSquare{28, 128, 128, 3, 1},
    kStrided{56, 128, 128, 3, 2}, kDeep{7, 512, 512, 3, 1}, kCifar{32, 16, 16, 3, 1};
constexpr unsigned kFolded = kBias | kRelu, kFoldedTail = kBias | kResidual | kRelu;

// The passes of a convolution that follows another one, with the norm between them fused into it.
const std::pair<ConvPass, unsigned> kOfAChain[] = {{ConvPass::kForward, kNormalize | kSums},
                                                   {ConvPass::kWeights, kNormalize},
                                                   {ConvPass::kData, kNormGradient}};

ConvProblem fused(const Layer& l, unsigned what, DType t, int64_t batch = 256,
                  ConvPass pass = ConvPass::kForward) {
  ConvProblem k = problem(l, pass, t, batch);
  k.fused = what;
  return k;
}
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

// ---- the rule --------------------------------------------------------------------------------------------

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

// ---- the choice and its memory ---------------------------------------------------------------------------

TEST(PlanCacheChoice, ToFuseOrNotIsRemembered) {
  const ConvProblem k = problem(kSquare, ConvPass::kForward, kBF16, 256);  // any plan that loads will do
  const ScratchDir here;
  int asked = 0;
  const auto none = [&](const std::vector<ConvPlan>&) -> std::optional<size_t> {
    return ++asked, std::nullopt;
  };
  const auto last = [&](const std::vector<ConvPlan>& p) -> std::optional<size_t> {
    return ++asked, p.size() - 1;
  };
  const PlanWish three{.at_most = 3};
  {
    PlanCache cache(h200_on_paper(), here.path());
    EXPECT_EQ(cache.choose(k, three, true, none), nullptr);
    EXPECT_EQ(cache.choose(k, three, true, last), nullptr);  // within the process
  }
  PlanCache next(h200_on_paper(), here.path());
  EXPECT_EQ(next.choose(k, three, true, last), nullptr);  // and in the next one
  EXPECT_EQ(asked, 1);
  PlanCache unmeasured(h200_on_paper(), here.path());
  const ConvPlan* p = unmeasured.choose(k, three, false, last);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(asked, 2);
  PlanCache again(h200_on_paper(), here.path());
  EXPECT_EQ(again.choose(k, three, false, none)->choice, p->choice);
  EXPECT_EQ(asked, 2);
}

TEST(PlanCacheChoice, WhereCudnnHasNoWayToFuseThereIsNoPlanAndNoError) {
  PlanCache cache(h200_on_paper(), "");
  ConvProblem odd = fused({9, 5, 7, 3, 2}, kSums, kF32, 2), grouped = fused({9, 8, 8, 3, 1}, kSums, kBF16, 2);
  odd.alignment = 4;
  grouped.groups = 8;
  const auto first = [](const std::vector<ConvPlan>&) -> std::optional<size_t> { return 0; };
  for (const ConvProblem& k : {odd, grouped})
    EXPECT_EQ(cache.choose(k, {.compiled = false}, false, first), nullptr) << k;
}

TEST(PlanCacheChoice, ThePickMayAskTheCache) {
  PlanCache cache(h200_on_paper(), "");
  ConvProblem k = problem(kSquare, ConvPass::kForward, kBF16, 256), other = k;
  other.n = 8;
  std::string name;
  const auto pick = [&](const std::vector<ConvPlan>&) -> std::optional<size_t> {
    name = cache.find(other).name;
    return 0;
  };
  EXPECT_NE(cache.choose(k, {}, false, pick), nullptr);
  EXPECT_FALSE(name.empty());
}

}  // namespace
}  // namespace skein::cuda
