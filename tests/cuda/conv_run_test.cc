// Convolutions on a GPU: results against the CPU, measured plans, and arguments that are put together once.
#include "engine/cuda/conv/conv_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/device/graph.h"
#include "engine/numerics.h"
#include "engine/vectors/vec.h"
#include "tests/cuda/against_cpu.h"
#include "tests/engine/device/recordings.h"
#include "tests/support/conv_cases.h"

namespace skein {
namespace {
using namespace testing;

class CudaConv : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, CudaConv, ::testing::Values(kFirstGpu), device_name);

const ConvCase kPointwise{4, 14, 14, 256, 64, 1, 1, {1, 0, 1, 1}},
    kStrided{4, 14, 14, 128, 128, 3, 3, {2, 1, 1, 1}};
const std::vector<ConvCase> kCases = with(kConvCases, {kPointwise, kStrided});

ConvArgs make_conv(const ConvCase& k, DType t, unsigned bits) {
  const ConvGeometry& g = k.geometry;
  const int64_t p = (k.h + 2 * g.padding - g.dilation * (k.r - 1) - 1) / g.stride + 1;
  const int64_t q = (k.w + 2 * g.padding - g.dilation * (k.s - 1) - 1) / g.stride + 1;
  ConvArgs c{.x = gaussian({k.n, k.h, k.w, k.c}, t, 1),
             .w = gaussian({k.o, k.r, k.s, k.c / g.groups}, kF32, 2),
             .bias = {},
             .y = gaussian({k.n, p, q, k.o}, t, 3),
             .geometry = g};
  if (bits & 1) c.bias = gaussian({k.o}, kF32, 4);
  return c;
}

// Either side sums up to 2304 products in its own order, the CPU's by Winograd where it is faster.
double conv_bound(DType t) { return t == kF32 ? 5e-5 : bound(t); }

template <class F>
void each_conv(F f) {
  for (DType t : {kF32, kBF16, kF16})
    for (const ConvCase& k : kCases)
      for (unsigned bits = 0; bits < 4; ++bits)
        f(make_conv(k, t, bits), bits, text(t, " case ", &k - kCases.data(), " bits ", bits));
}

TEST_P(CudaConv, ConvForwardAgreesWithTheCpu) {
  each_conv([](ConvArgs a, unsigned bits, const std::string& what) {
    a.relu = bits & 2;
    const ConvArgs b = there(a, kFirstGpu);
    cpu::conv2d_forward(a), cuda::conv2d_forward(b);
    EXPECT_LT(difference(b.y, a.y), conv_bound(a.x.dtype())) << what;
  });
}
TEST_P(CudaConv, ConvDataGradientAgreesWithTheCpu) {
  each_conv([](ConvArgs a, unsigned bits, const std::string& what) {
    a.bias = {}, a.beta = bits & 2 ? 1 : 0;
    const ConvArgs b = there(a, kFirstGpu);
    cpu::conv2d_backward_data(a), cuda::conv2d_backward_data(b);
    EXPECT_LT(difference(b.x, a.x), conv_bound(a.x.dtype())) << what;
  });
}
TEST_P(CudaConv, ConvWeightGradientAgreesWithTheCpu) {
  each_conv([](ConvArgs a, unsigned bits, const std::string& what) {
    a.bias = {}, a.beta = bits & 2 ? 0.5f : 0;
    const ConvArgs b = there(a, kFirstGpu);
    cpu::conv2d_backward_weights(a), cuda::conv2d_backward_weights(b);
    EXPECT_LT(difference(b.w, a.w), conv_bound(a.x.dtype())) << what;
  });
}

TEST_P(CudaConv, Tf32IsUsedOnlyWhereItIsAskedFor) {
  const ConvArgs a = make_conv(kPointwise, kF32, 0);
  cpu::conv2d_forward(a);
  ConvArgs exact = there(a, GetParam()), quick = there(a, GetParam());
  cuda::conv2d_forward(exact);
  numerics().tf32 = true;
  cuda::conv2d_forward(quick);
  numerics().tf32 = false;
  EXPECT_LT(difference(exact.y, a.y), 2e-5);
  EXPECT_LT(difference(quick.y, a.y), 5e-3);
}

TEST_P(CudaConv, DeterministicConvolutionsRepeatThemselvesBitForBit) {
  numerics().deterministic = true;
  for (DType t : {kF32, kBF16, kF16}) {
    const ConvArgs a = make_conv(kStrided, t, 0), b = there(a, GetParam()), c = there(a, GetParam());
    for (const ConvArgs* each : {&b, &c})
      cuda::conv2d_backward_weights(*each), cuda::conv2d_backward_data(*each);
    EXPECT_EQ(values(b.w), values(c.w)) << t;
    EXPECT_EQ(values(b.x), values(c.x)) << t;
  }
  numerics().deterministic = false;
}

TEST_P(CudaConv, MeasuredPlansGiveTheSameResults) {
  numerics().measure = true;
  for (DType t : {kF32, kBF16, kF16}) {
    ConvArgs a = make_conv({2, 13, 13, 64, 96, 3, 3, {1, 1, 1, 1}}, t, 0);
    a.beta = 1;
    const ConvArgs b = there(a, GetParam()), c = there(a, GetParam()), e = there(a, GetParam());
    cuda::conv2d_forward(b), cuda::conv2d_backward_data(c), cuda::conv2d_backward_weights(e);
    const ConvArgs x = there(a, kCpu), y = there(a, kCpu);
    cpu::conv2d_backward_data(x), cpu::conv2d_backward_weights(y), cpu::conv2d_forward(a);
    EXPECT_LT(difference(b.y, a.y), conv_bound(t)) << t;
    EXPECT_LT(difference(c.x, x.x), conv_bound(t)) << t;
    EXPECT_LT(difference(e.w, y.w), conv_bound(t)) << t;
  }
  numerics().measure = false;
}

// The first step of a shape, in which plans are measured, runs in the recording's memory, where
// their workspaces would stay.
TEST_P(CudaConv, MeasuringTakesNothingFromARecordingsMemory) {
  const ConvArgs a = there(make_conv({3, 15, 11, 40, 72, 3, 3, {1, 1, 1, 1}}, kBF16, 0), GetParam());
  int64_t bytes[2];
  numerics().measure = true;
  for (int64_t& b : bytes) {  // the second uses the first's choice
    Recorded work(GetParam(), "a convolution");
    for (int run = 0; run < 2; ++run)
      work.run({}, [&] { cuda::conv2d_forward(a), cuda::conv2d_backward_weights(a); });
    EXPECT_TRUE(work.refused().empty()) << work.refused();
    b = bytes_of(work.memory());
  }
  numerics().measure = false;
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST_P(CudaConv, MeasuringCountsTheDevicesTimeAndNotTheHosts) {
  const Device d = GetParam();
  const Tensor x({1000}, kF32, d);
  const auto slow_to_launch = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    fill(x, 1.f);
  };
  EXPECT_LT(cuda::seconds_of(d, slow_to_launch), 0.1);
  EXPECT_EQ(values(x)[999], 1.0);
}

TEST_P(CudaConv, WhatCannotBeCapturedIsMeasuredByTheHostsClock) {
  const Device d = GetParam();
  const Tensor x = Tensor::zeros({1000}, kF32, d), one({1000}, kF32, d);
  fill(one, 1.f);
  int runs = 0;
  const double s = cuda::seconds_of(d, [&] {
    axpy(x, 1.f, one);
    current_stream(d).sync();
    ++runs;
  });
  EXPECT_GT(s, 0);
  EXPECT_EQ(values(x)[999], double(runs));  // a failed capture lost nothing
}

TEST_P(CudaConv, TheSameArgumentsArePutTogetherOnce) {
  const ConvArgs a = there(make_conv(kConvCases[1], kBF16, 0), GetParam());
  const std::vector<int64_t> ids = {cuda::kImageId, cuda::kWeightsId};
  const cuda::Descriptor& made = cuda::arguments(ids, {a.x.raw(), a.w.raw()}, nullptr);
  EXPECT_EQ(&cuda::arguments(ids, {a.x.raw(), a.w.raw()}, nullptr), &made);
  EXPECT_NE(&cuda::arguments(ids, {a.x.raw(), a.y.raw()}, nullptr), &made);
  cuda::conv2d_forward(a);
  const std::vector<double> y = values(a.y);
  fill(a.y, 0.f);
  cuda::conv2d_forward(a);
  EXPECT_EQ(values(a.y), y);
  const ConvArgs elsewhere = there(a, GetParam());
  fill(elsewhere.y, 0.f);
  cuda::conv2d_forward(elsewhere);
  EXPECT_EQ(values(elsewhere.y), y);
}

TEST_P(CudaConv, ABiasMayBeginAnywhere) {
  for (const DType t : {kF32, kBF16, kF16}) {
    const Tensor a = gaussian({8, 32}, t, 1), b = gaussian({32, 64}, t, 2), all = gaussian({65}, kF32, 3),
                 y({8, 64}, t), z({8, 64}, t, GetParam());
    cpu::gemm({.y = y, .a = a, .b = b, .bias = all.view({64}, 1)});
    cuda::gemm(
        {.y = z, .a = a.to(GetParam()), .b = b.to(GetParam()), .bias = all.to(GetParam()).view({64}, 1)});
    EXPECT_LT(difference(z, y), conv_bound(t)) << t;
  }
}

TEST_P(CudaConv, ManyThreadsMayUseThemAtOnce) {
  std::vector<std::vector<double>> results(4);
  std::vector<std::thread> team;
  for (size_t i = 0; i < results.size(); ++i)
    team.emplace_back([&, i] {
      const ConvArgs c = there(make_conv(kConvCases[1], kF32, 1), kFirstGpu);
      const GemmArgs g{.y = Tensor({64, 64}, kF32, kFirstGpu),
                       .a = gaussian({64, 64}, kF32, 1).to(kFirstGpu),
                       .b = gaussian({64, 64}, kF32, 2).to(kFirstGpu)};
      for (int repeat = 0; repeat < 20; ++repeat) cuda::conv2d_forward(c), cuda::gemm(g);
      results[i] = values(c.y);
      for (double v : values(g.y)) results[i].push_back(v);
    });
  for (auto& t : team) t.join();
  for (const auto& r : results) EXPECT_EQ(r, results[0]);
}

TEST_P(CudaConv, AResultOfTheWrongShapeIsRefused) {
  ConvArgs c = there(make_conv(kConvCases[0], kF32, 0), GetParam());
  c.y = Tensor({2, 9, 8, 16}, kF32, GetParam());
  EXPECT_THROW(cuda::conv2d_forward(c), Error);
  EXPECT_THROW(cuda::gemm({.y = c.y.view({2, 2}), .a = c.y.view({2, 3}), .b = c.y.view({4, 2})}), Error);
}

}  // namespace
}  // namespace skein
