// A plan for every convolution of our models at batch 256, on a described H200. The table is
// tests/cuda/plans_h200.txt; a new one is written to the build folder.
#include <gtest/gtest.h>

#include "tests/cuda/conv_shapes.h"

namespace skein::cuda {
namespace {
using namespace testing;

// All passes in all types; the data gradient of a block's first convolution is added to that of the shortcut.
std::vector<ConvProblem> problems(const Layer& l) {
  std::vector<ConvProblem> all;
  for (ConvPass pass : {ConvPass::kForward, ConvPass::kData, ConvPass::kWeights})
    for (DType t : {kBF16, kF16, kF32}) all.push_back(problem(l, pass, t, 256));
  for (DType t : {kBF16, kF16, kF32}) {
    all.push_back(problem(l, ConvPass::kData, t, 256));
    all.back().accumulate = true;
  }
  return all;
}

TEST(CudnnSweep, EveryLayerOfEveryModelHasPlans) {
  const struct {
    const char* model;
    std::set<Layer> layers;
  } models[] = {{"resnet50", resnet_layers(true, 224, true)},
                {"resnet18", resnet_layers(false, 224, true)},
                {"resnet20", resnet_layers(false, 32, false, 16, 3)},
                {"resnet18-cifar", resnet_layers(false, 32, false)},
                {"vgg16-bn", vgg16_layers(224)}};
  const Descriptor h200 = h200_on_paper();
  std::ofstream table(SKEIN_BINARY_DIR "/plans_h200.txt");
  table << "cuDNN " << cudnn().cudnnGetVersion()
        << ", H200 on paper, batch 256: the first plan by heuristics\n";
  std::set<std::string> done;
  for (const auto& m : models) {
    table << "\n" << m.model << "\n";
    for (const Layer& l : m.layers)
      for (const ConvProblem& k : problems(l)) {
        if (!done.insert(text(k)).second) continue;
        const std::vector<ConvPlan> plans = conv_plans(h200, k);
        EXPECT_EQ(plans.size(), 1u) << m.model << ": " << k;
        if (!plans.empty()) table << k << ": " << plans[0].name << ", " << plans[0].workspace << " bytes\n";
      }
  }
  EXPECT_GT(done.size(), 300u);
}

}  // namespace
}  // namespace skein::cuda
