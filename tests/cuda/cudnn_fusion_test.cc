// What the code fuses onto convolutions, asked of cuDNN for an H200 on paper; and when it is worth it. Few
// shapes here, all in fusion_sweep_test.
#include <gtest/gtest.h>

#include "engine/cuda/conv_plan.h"
#include "engine/cuda/conv_worth.h"
#include "tests/cuda/conv_shapes.h"
#include "tests/files.h"

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

ConvProblem fused(const Layer& l, unsigned what, DType t, int64_t batch = 256) {
  ConvProblem k = problem(l, ConvPass::kForward, t, batch);
  k.fused = what;
  return k;
}
std::vector<ConvPlan> on_paper(const ConvProblem& k, size_t at_most = 1) {
  return conv_plans(h200(), k, {.at_most = at_most, .unloaded = true});
}

// Each that is compiled at run time takes a second: every pattern is asked for once, in either type in turn.
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

TEST(CudnnFusions, NothingIsFusedOntoAGradient) {
  ConvProblem k = problem(kSquare, ConvPass::kData, kBF16, 8);
  k.fused = kSums;
  EXPECT_THROW(graph_of(k), Error);
}

TEST(CudnnFusions, AProblemIsNamedWithWhatIsFused) {
  EXPECT_NE(text(fused(kSquare, kFoldedTail, kBF16)).find("+ bias + residual + relu"), std::string::npos);
  EXPECT_NE(text(fused(kSquare, kSums, kBF16)), text(fused(kSquare, 0, kBF16)));
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
