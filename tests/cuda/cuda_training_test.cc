// Whole models on CUDA against the CPU: the same losses step by step, in either precision.
#include "engine/cuda/conv/conv_run.h"
#include "engine/ops.h"
#include "nn/models.h"
#include "optim/rule.h"
#include "tests/cuda/against_cpu.h"

namespace skein {
namespace {
using namespace testing;

class CudaTraining : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, CudaTraining, ::testing::Values(kFirstGpu), device_name);

struct Run {
  std::vector<double> losses, weights;
  double evaluated = 0;
};

Run train(Device d, const std::string& name, const nn::Input& in, int64_t batch, DType t, int steps) {
  const auto model = nn::make_model(name, in);
  nn::initialize(*model, 1);
  const nn::Flat flat = nn::flatten(*model, allocator(d));
  const auto rule = optim::sgd(flat.x, {.momentum = 0.9f, .weight_decay = 5e-4f, .decayed = flat.decayed});
  Tensor labels({batch}, kI32);
  for (int64_t i = 0; i < batch; ++i) labels.data<int32_t>()[i] = int32_t(i * 7 % in.classes);
  const Tensor y = labels.to(d);
  Run run;
  for (int k = 0; k < steps; ++k) {
    const Tensor x = cast(random_normal({batch, in.height, in.width, in.channels}, uint64_t(k + 1)), t).to(d);
    const RandomScope scope(1, uint64_t(k), 0);
    Tape tape;
    for (nn::Param* p : model->params()) tape.watch(p->value, p->grad);
    const Tensor loss = cross_entropy(model->forward(x), y);
    tape.backward(loss);
    rule->step(flat.x, flat.g, 0.02f);
    run.losses.push_back(double(loss.item()));
  }
  run.weights = values(flat.x);
  model->set_training(false);
  const Tensor x = cast(random_normal({batch, in.height, in.width, in.channels}, 99), t).to(d);
  run.evaluated = double(cross_entropy(model->forward(x), y).item());
  return run;
}

void expect_same(const char* model, const nn::Input& in, int64_t batch, DType t, int steps,
                 double tolerance) {
  const Run cpu = train(kCpu, model, in, batch, t, steps), gpu = train(kFirstGpu, model, in, batch, t, steps);
  EXPECT_TRUE(allclose(gpu.losses, cpu.losses, tolerance)) << model << ' ' << t;
  EXPECT_TRUE(allclose(gpu.weights, cpu.weights, tolerance)) << model << ' ' << t;
  EXPECT_NEAR(gpu.evaluated, cpu.evaluated, tolerance * 10 * (1 + std::abs(cpu.evaluated)))
      << model << ' ' << t;
}

TEST_P(CudaTraining, TwentyStepsOfResnet20EqualTheCpus) {
  expect_same("resnet20", {32, 32, 3, 10}, 16, kF32, 20, 2e-3);
  expect_same("resnet20", {32, 32, 3, 10}, 16, kBF16, 20, 5e-2);
}
// Norms between two convolutions are fused into the second one here, forward and backward.
TEST_P(CudaTraining, StepsInHalfPrecisionEqualTheCpus) {
  const auto fused = [] { return cuda::fused_runs(cuda::ConvPass::kData, cuda::kNormGradient); };
  const int64_t before = fused();
  expect_same("resnet20", {32, 32, 3, 10}, 16, kF16, 5, 2e-2);
  if (norms_can_be_fused()) { EXPECT_EQ(fused() - before, 5 * 9); }
  expect_same("resnet50", {64, 64, 3, 10}, 4, kF16, 2, 2e-2);
}
TEST_P(CudaTraining, AFewStepsOfTheOtherModelsEqualTheCpus) {
  expect_same("mlp", {28, 28, 1, 10}, 32, kF32, 5, 1e-3);
  expect_same("small-cnn", {28, 28, 1, 10}, 32, kF32, 5, 1e-3);
  expect_same("cnn7", {28, 28, 1, 10}, 16, kF32, 3, 1e-3);
  expect_same("gem-cnn", {28, 28, 1, 10}, 16, kF32, 3, 1e-3);
  expect_same("resnet50", {64, 64, 3, 10}, 4, kF32, 2, 5e-3);
}

}  // namespace
}  // namespace skein
