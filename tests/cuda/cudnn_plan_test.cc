// cuDNN's plans for our convolutions, built for a described H200. This covers a few, cudnn_sweep_test all.
#include <gtest/gtest.h>

#include "tests/cuda/conv_shapes.h"

namespace skein::cuda {
namespace {
using namespace testing;

const Descriptor& h200() {
  static const Descriptor d = h200_on_paper();
  return d;
}

const Layer kStem{224, 3, 64, 7, 2}, kSquare{56, 64, 64, 3, 1}, kWide{14, 256, 1024, 1, 1},
    kStrided{28, 256, 256, 3, 2}, kCifar{32, 16, 16, 3, 1};
constexpr ConvPass kPasses[] = {ConvPass::kForward, ConvPass::kData, ConvPass::kWeights};

TEST(CudnnPlans, ExistForEveryPassAndTypeOfTypicalLayers) {
  for (const Layer& l : {kStem, kSquare, kWide, kStrided, kCifar})
    for (ConvPass pass : kPasses)
      for (DType t : {kBF16, kF16, kF32}) {
        const ConvProblem k = problem(l, pass, t, 256);
        EXPECT_EQ(conv_plans(h200(), k).size(), 1u) << k;
      }
}

TEST(CudnnPlans, AddToTheResultWhereAsked) {
  for (ConvPass pass : {ConvPass::kData, ConvPass::kWeights}) {
    ConvProblem k = problem(kSquare, pass, kBF16, 256);
    k.accumulate = true;
    EXPECT_EQ(conv_plans(h200(), k).size(), 1u) << k;
  }
}

TEST(CudnnPlans, UseTensorCoresFor16BitsAndForF32OnlyAsTf32) {
  const auto best = [](DType t, bool tf32) {
    ConvProblem k = problem(kSquare, ConvPass::kForward, t, 256);
    k.tf32 = tf32;
    std::string names;
    for (const ConvPlan& p : conv_plans(h200(), k, {.at_most = 4})) names += p.name + ';';
    return names;
  };
  for (DType t : {kBF16, kF16})
    EXPECT_NE(best(t, false).find("tensor cores"), std::string::npos) << best(t, false);
  EXPECT_NE(best(kF32, true).find("tensor cores"), std::string::npos) << best(kF32, true);
  EXPECT_EQ(best(kF32, false).find("tensor cores"), std::string::npos) << best(kF32, false);
}

TEST(CudnnPlans, AreDeterministicWhereAsked) {
  for (ConvPass pass : kPasses)
    for (DType t : {kBF16, kF16, kF32}) {
      ConvProblem k = problem(kSquare, pass, t, 256);
      k.deterministic = true;
      const std::vector<ConvPlan> plans = conv_plans(h200(), k, {.at_most = 3});
      EXPECT_FALSE(plans.empty()) << k;
      for (const ConvPlan& p : plans)
        EXPECT_EQ(p.name.find("not deterministic"), std::string::npos) << p.name;
    }
}

TEST(CudnnPlans, ExistForOddShapes) {
  ConvProblem odd = problem({9, 5, 7, 3, 2}, ConvPass::kForward, kBF16, 2);
  EXPECT_EQ(conv_plans(h200(), odd).size(), 1u) << odd;
  odd = problem({12, 8, 12, 3, 1}, ConvPass::kForward, kF32, 1);
  odd.dilation = odd.padding = 2;
  EXPECT_EQ(conv_plans(h200(), odd).size(), 1u) << odd;
  odd.alignment = 4;
  EXPECT_EQ(conv_plans(h200(), odd).size(), 1u) << odd;
}

TEST(CudnnPlans, ADeviceDescribesItselfInJson) {
  EXPECT_NE(json_of(h200()).find("NVIDIA H200"), std::string::npos) << json_of(h200());
}

}  // namespace
}  // namespace skein::cuda
