// Properties of captures: other streams inside them, allocations meanwhile, and captures that fail.
#include <thread>

#include "engine/device/graph.h"
#include "engine/vectors/slot.h"
#include "engine/vectors/vec.h"
#include "nn/models.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;
using Way = Recorded::Way;

class CudaGraph : public OnDevice {
 protected:
  const Device d_ = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Devices, CudaGraph, ::testing::Values(kFirstGpu), device_name);

TEST_P(CudaGraph, StreamsThatAreForkedAndJoinedArePartOfIt) {
  const Tensor x({1 << 16}, kF32, d_), y({1 << 16}, kF32, d_);
  Stream side(d_);
  Recorded work(d_, "a fork");
  for (int run = 0; run < 4; ++run) {
    fill(x, float(run));
    work.run({}, [&] {
      Stream& mine = current_stream(d_);
      side.wait(mine.record());
      scale(x, 3.f);
      mine.wait(side.record());
      scaled_copy(y, 2.f, x);
    });
    EXPECT_EQ(values(y)[77], 6.0 * run);
  }
  EXPECT_TRUE(work.refused().empty()) << work.refused();
  EXPECT_GE(work.length({}), 2);
}

TEST_P(CudaGraph, WaitingForWhatLiesOutsideFallsBack) {
  const Tensor x({1 << 16}, kF32, d_);
  Stream side(d_);
  Recorded work(d_, "a wait");
  fill(x, 1.f);
  for (int run = 0; run < 4; ++run) {
    const Event outside = side.record();
    work.run({}, [&] {
      current_stream(d_).wait(outside);
      scale(x, 2.f);
    });
  }
  EXPECT_NE(work.refused().find("CUDA"), std::string::npos) << work.refused();
  EXPECT_EQ(values(x)[0], 16);
}

TEST_P(CudaGraph, MemoryMayBeAskedForWhileCapturing) {
  const Tensor x({1000}, kF32, d_), y({1000}, kF32, d_);
  fill(x, 1.f);
  Recorded work(d_, "growth");
  int64_t rows = 1000;
  for (int run = 0; run < 4; ++run) {
    work.run({}, [&] {  // the second run needs a block that no pool has
      const Tensor large({rows}, kF32, d_);
      fill(large, 5.f);
      copy(y, large.view({1000}));
    });
    rows = (int64_t(3) << 20) + 12345;
    EXPECT_EQ(values(y)[999], 5);
  }
  EXPECT_TRUE(work.refused().empty()) << work.refused();
}

TEST_P(CudaGraph, OtherThreadsGoOnWhileOneCaptures) {
  const Tensor x({1 << 16}, kF32, d_);
  fill(x, 1.f);
  current_stream(d_).sync();
  std::thread other;
  Recorded work(d_, "a capture");
  for (int run = 0; run < 3; ++run) {
    double sum = 0;
    work.run({}, [&] {
      scale(x, 2.f);
      if (run != 1) return;
      std::thread([&] {
        const Tensor mine({1 << 20}, kF32, d_);
        fill(mine, 0.5f);
        sum = norm(mine);  // waits for the device
      }).join();
    });
    if (run == 1) { EXPECT_NEAR(sum, 512, 1e-3); }
  }
  EXPECT_TRUE(work.refused().empty()) << work.refused();
  EXPECT_EQ(values(x)[5], 8);
}

struct Training {
  std::unique_ptr<nn::Module> model = nn::make_model("resnet20", {32, 32, 3, 10});
  nn::Flat flat;
  Tensor x, y, v;
  Training(Device d, DType t) {
    nn::initialize(*model, 1);
    flat = nn::flatten(*model, allocator(d));
    v = Tensor::zeros(flat.x.shape(), kF32, d);
    x = Tensor({32, 32, 32, 3}, t, d);
    Tensor labels({32}, kI32);
    for (int i = 0; i < 32; ++i) labels.data<int32_t>()[i] = i % 10;
    y = labels.to(d);
  }
  void step() {
    Tape tape;
    for (nn::Param* p : model->params()) tape.watch(p->value, p->grad);
    tape.backward(cross_entropy(model->forward(x), y));
    sgd_update({.x = flat.x, .v = v, .g = flat.g, .at = flat.x, .lr = 0.01f, .mu = 0.9f});
  }
};
// Like StepGraphs: cuDNN, cuBLASLt and all our kernels in one graph, compared with the same steps without it.
void expect_same_steps(Device d, DType t) {
  Training plain(d, t), recorded(d, t);
  Recorded work(d, "a step");
  for (uint64_t k = 0; k < 6; ++k) {
    const Tensor fresh = random_normal({32, 32, 32, 3}, k, 1, t).to(d);
    copy_bytes(plain.x, fresh), copy_bytes(recorded.x, fresh);
    plain.step();
    work.run({}, [&] { recorded.step(); });
    EXPECT_EQ(values(plain.flat.x), values(recorded.flat.x)) << t << " step " << k;
  }
  EXPECT_TRUE(work.refused().empty()) << work.refused();
}
TEST_P(CudaGraph, AStepOfResnet20ReplaysBitForBit) {
  expect_same_steps(d_, kBF16);
  expect_same_steps(d_, kF16);  // with norms fused into the convolutions after them
}

}  // namespace
}  // namespace skein
