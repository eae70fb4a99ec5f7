// Which fusions cuDNN has for every convolution of resnet50 at batch 256, on an H200 described on paper; the
// table is tests/cuda/fusions_h200.txt, written anew to the build folder.
#include <gtest/gtest.h>

#include "engine/cuda/conv_plan.h"
#include "engine/cuda/conv_worth.h"
#include "tests/cuda/conv_shapes.h"

namespace skein::cuda {
namespace {
using namespace testing;

constexpr const char* kWorth[] = {"no", "if ready", "yes"};

// Every fusion that the code asks for, for every layer it may ask it for.
TEST(FusionSweep, EveryLayerOfResnet50HasThem) {
  const Descriptor h200 = h200_on_paper();
  std::ofstream table(SKEIN_BINARY_DIR "/fusions_h200.txt");
  table << "cuDNN " << cudnn().cudnnGetVersion()
        << ", H200 on paper, resnet50, batch 256: the first plan by heuristics, and the rule without "
           "measuring\n";
  for (const DType t : {kF16, kBF16})
    for (const unsigned what :
         {unsigned(kSums), unsigned(kBias | kRelu), unsigned(kBias | kResidual | kRelu)}) {
      int ready = 0, compiled = 0, missing = 0;
      std::ostringstream rows;
      for (const Layer& l : resnet_layers(true, 224, true)) {
        ConvProblem k = problem(l, ConvPass::kForward, t, 256);
        k.fused = what;
        const std::vector<ConvPlan> plans = conv_plans(h200, k, {.unloaded = true});
        EXPECT_EQ(plans.size(), 1u) << k;
        ++(plans.empty() ? missing : plans[0].compiled ? compiled : ready);
        rows << k << ": " << (plans.empty() ? "none" : plans[0].name)
             << "; taken: " << kWorth[int(worth_fusing(k))] << "\n";
      }
      table << "\n"
            << rows.str() << "-> " << ready << " ready, " << compiled << " compiled at run time, " << missing
            << " missing\n";
    }
}

}  // namespace
}  // namespace skein::cuda
