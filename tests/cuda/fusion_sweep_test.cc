// Which fusions cuDNN has for every convolution of resnet50 at batch 256, on a described H200. The table is
// tests/cuda/fusions_h200.txt; a new one is written to the build folder.
#include <gtest/gtest.h>

#include "engine/cuda/conv/conv_plan.h"
#include "engine/cuda/conv/conv_worth.h"
#include "tests/cuda/conv_shapes.h"

namespace skein::cuda {
namespace {
using namespace testing;

// Whether it is fused without measuring.
bool taken(const ConvProblem& k, const ConvPlan& p) {
  const Worth worth = worth_fusing(k);
  return worth == Worth::kEvenIfCompiled || (worth == Worth::kIfReady && !p.compiled);
}

// Writes one pattern: a row for each layer, and the number of each kind.
void ask(std::ostream& table, const std::set<Layer>& layers, ConvPass pass, unsigned what, DType t) {
  static const Descriptor h200 = h200_on_paper();
  int ready = 0, compiled = 0, missing = 0, by_rule = 0;
  table << "\n";
  for (const Layer& l : layers) {
    ConvProblem k = problem(l, pass, t, 256);
    k.fused = what;
    const std::vector<ConvPlan> plans = conv_plans(h200, k, {.unloaded = true});
    EXPECT_EQ(plans.size(), 1u) << k;
    ++(plans.empty() ? missing : plans[0].compiled ? compiled : ready);
    const bool yes = !plans.empty() && taken(k, plans[0]);
    by_rule += yes;
    table << k << ": " << (plans.empty() ? "none" : plans[0].name) << "; taken: " << (yes ? "yes" : "no")
          << "\n";
  }
  table << "-> " << ready << " ready, " << compiled << " compiled at run time, " << missing
        << " missing; the rule takes " << by_rule << "\n";
}

// Every fusion that the code asks for, for every layer it may ask it for.
TEST(FusionSweep, EveryLayerOfResnet50HasThem) {
  std::ofstream table(SKEIN_BINARY_DIR "/fusions_h200.txt");
  table << "cuDNN " << cudnn().cudnnGetVersion()
        << ", H200 on paper, resnet50, batch 256: the first plan by heuristics, and the rule without "
           "measuring\n";
  const std::set<Layer> followers = resnet50_followers();
  ask(table, followers, ConvPass::kForward, kNormalize | kSums, kF16);
  ask(table, followers, ConvPass::kWeights, kNormalize, kF16);
  ask(table, followers, ConvPass::kData, kNormGradient, kF16);
  for (const DType t : {kF16, kBF16})
    for (const unsigned what :
         {unsigned(kSums), unsigned(kBias | kRelu), unsigned(kBias | kResidual | kRelu)})
      ask(table, resnet_layers(true, 224, true), ConvPass::kForward, what, t);
}

}  // namespace
}  // namespace skein::cuda
