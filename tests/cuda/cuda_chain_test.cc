// Chains of conv_bn on a GPU, with norms fused into the next convolution, against separate ops on the CPU.
#include <cstring>
#include <map>

#include "engine/cuda/conv/conv_run.h"
#include "engine/numerics.h"
#include "engine/raw_image.h"
#include "tests/cuda/against_cpu.h"

namespace skein {
namespace {
using namespace testing;
using cuda::ConvPass;

class CudaChain : public OnDevice {
 protected:
  void TearDown() override { numerics() = {}; }
  const Device d_ = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Devices, CudaChain, ::testing::Values(kFirstGpu), device_name);

struct Conv {
  int64_t out;
  int kernel, stride;
};
struct ChainCase {
  Shape x;
  std::vector<Conv> convs;
  bool relu, add;
};
const ChainCase kPlain{{4, 12, 12, 16}, {{16, 3, 1}, {16, 3, 1}}, true, false},
    kBasic{{4, 13, 13, 16}, {{32, 3, 2}, {32, 3, 1}}, true, true},
    kBottleneck{{4, 14, 14, 64}, {{32, 1, 1}, {32, 3, 2}, {128, 1, 1}}, true, true},
    kOpen{{3, 11, 9, 24}, {{40, 3, 1}, {16, 1, 2}, {24, 3, 1}}, false, false};
const ChainCase kChains[] = {kPlain, kBasic, kBottleneck, kOpen};

// The inputs of a chain, the same on every device.
struct Setting {
  Tensor x, residual, weights;  // of the projection that the gradients are of
  std::vector<ConvBnLink> links;
};
Setting setting(const ChainCase& k, DType t, Device d, float offset = 0) {
  Setting s;
  s.x = random_normal(k.x, 1, 1, t).to(d);
  Shape y = k.x;
  uint64_t seed = 10;
  for (const Conv& c : k.convs) {
    const Tensor w = random_normal({c.out, c.kernel, c.kernel, y[3]}, seed++, 0.1f);
    if (offset != 0)  // the means are about `offset` deviations
      for (int64_t i = 0; i < w.size(); ++i) w.data<float>()[i] += offset * 0.02f;
    const NormState norm{random_uniform({c.out}, seed++, 0.5f, 2).to(d), random_normal({c.out}, seed++).to(d),
                         random_normal({c.out}, seed++).to(d),
                         random_uniform({c.out}, seed++, 0.5f, 2).to(d)};
    s.links.push_back({w.to(d), {.stride = c.stride, .padding = c.kernel / 2}, norm});
    y = {y[0], (y[1] - 1) / c.stride + 1, (y[2] - 1) / c.stride + 1, c.out};
  }
  if (k.add) s.residual = random_normal(y, 3, 1, t).to(d);
  s.weights = random_uniform(y, 8, -1, 1, t).to(d);
  return s;
}

enum class As : uint8_t { kChain, kOneByOne };

Tensor forward(const ChainCase& k, const Setting& s, As as) {
  const auto residual = [&] { return s.residual; };
  if (as == As::kChain) return conv_bn_chain(s.x, s.links, true, k.relu, residual);
  Tensor y = s.x;
  for (const ConvBnLink& l : s.links) {
    const bool last = &l == &s.links.back();
    y = conv_bn(y, l.w, l.geometry, l.norm,
                {.training = true, .relu = k.relu || !last, .residual = last ? s.residual : Tensor()});
  }
  return y;
}

// All results, by name.
using ChainResult = std::map<std::string, std::vector<double>>;
ChainResult run(const ChainCase& k, DType t, Device d, As as, float offset = 0) {
  const Setting s = setting(k, t, d, offset);
  ChainResult r;
  Tape tape;
  std::map<std::string, Tensor> grads;
  const auto watch = [&](const std::string& name, const Tensor& leaf) {
    tape.watch(leaf, grads[name] = Tensor(leaf.shape(), leaf.dtype(), d));
  };
  watch("dx", s.x);
  if (k.add) watch("dresidual", s.residual);
  for (size_t i = 0; i < s.links.size(); ++i) {
    watch(text("dw", i), s.links[i].w);
    watch(text("dgamma", i), s.links[i].norm.gamma);
    watch(text("dshift", i), s.links[i].norm.shift);
  }
  const Tensor y = forward(k, s, as);
  r["y"] = values(y);
  tape.backward(sum(mul(y, s.weights)));
  for (const auto& [name, g] : grads) r[name] = values(g);
  for (size_t i = 0; i < s.links.size(); ++i) {
    r[text("mean", i)] = values(s.links[i].norm.running_mean);
    r[text("variance", i)] = values(s.links[i].norm.running_var);
  }
  return r;
}

struct Counts {
  int64_t forward = cuda::fused_runs(ConvPass::kForward, cuda::kNormalize | cuda::kSums),
          weights = cuda::fused_runs(ConvPass::kWeights, cuda::kNormalize),
          data = cuda::fused_runs(ConvPass::kData, cuda::kNormGradient);
};

// A flipped ReLU changes a gradient by its own size; after three ReLUs a few in a thousand are flipped.
void expect_near(const ChainResult& got, const ChainResult& want, double y, double gradient) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, values] : want)
    EXPECT_LT(distance(got.at(name), values), name[0] == 'd' ? gradient : y) << name;
}

TEST_P(CudaChain, IsOneOpAfterAnotherAndLeavesTheNormsToTheConvolutions) {
  for (const ChainCase& k : kChains) {
    SCOPED_TRACE(text("case ", &k - kChains));
    const Counts before;
    const ChainResult got = run(k, kF16, d_, As::kChain);
    const Counts after;
    const int64_t between =
        norms_can_be_fused() ? int64_t(k.convs.size()) - 1 : after.forward - before.forward;
    EXPECT_EQ(after.forward - before.forward, between);
    EXPECT_EQ(after.weights - before.weights, between);
    EXPECT_EQ(after.data - before.data, between);
    const ChainResult half = run(k, kF16, kCpu, As::kOneByOne), whole = run(k, kF32, kCpu, As::kOneByOne);
    expect_near(got, half, 2e-3, 4e-2);
    for (const auto& [name, values] : whole) {  // as far from f32 as f16 is, plus a little
      const double most = 2 * distance(half.at(name), values) + (name[0] == 'd' ? 2e-2 : 3e-4);
      EXPECT_LT(distance(got.at(name), values), most) << name;
    }
  }
}

// Forward and the weight gradient are bound by products here; the data gradient's sums
// are still worth fusing.
TEST_P(CudaChain, EachPassIsFusedForItself) {
  const ChainCase k{{32, 8, 8, 8}, {{512, 1, 1}, {64, 5, 1}}, true, false};
  const Counts before;
  const ChainResult got = run(k, kF16, d_, As::kChain);
  const Counts after;
  EXPECT_EQ(after.forward, before.forward);
  EXPECT_EQ(after.weights, before.weights);
  EXPECT_EQ(after.data, before.data + 1);
  expect_near(got, run(k, kF16, kCpu, As::kOneByOne), 2e-3, 4e-2);
}

// The weight gradient is not fused here although forward is.
TEST_P(CudaChain, AnImageThatWasNotKeptIsMadeAgain) {
  const Tensor z = random_normal({1, 16, 16, 256}, 1, 1, kF16).to(d_);
  const Tensor dy = random_normal({1, 16, 16, 512}, 2, 1, kF16).to(d_);
  BatchNormArgs norm;
  norm.x = z, norm.relu = true;
  norm.gamma = random_uniform({256}, 3, 0.5f, 2).to(d_), norm.shift = random_normal({256}, 4).to(d_);
  norm.mean = Tensor({256}, kF32, d_), norm.rstd = Tensor({256}, kF32, d_);
  const RawImage image = cuda::raw_image(norm);
  norm.y = Tensor(z.shape(), kF16, d_);
  batch_norm_forward(d_, norm);
  const auto gradient = [&](bool kept, float beta) {
    const Tensor dw = random_normal({512, 7, 7, 256}, 5).to(d_).clone();
    const ConvArgs c{.x = norm.y, .w = dw, .bias = {}, .y = dy, .geometry = {.padding = 3}, .beta = beta};
    if (kept)
      conv2d_backward_weights(d_, c);
    else
      cuda::raw_conv2d_backward_weights(image, c);
    return values(dw);
  };
  const Counts before;
  for (const float beta : {0.f, 1.f}) EXPECT_EQ(gradient(false, beta), gradient(true, beta)) << beta;
  EXPECT_EQ(Counts().weights, before.weights);
}

// The measured ways differ from run to run, and so do the flipped signs: at most four in a thousand.
TEST_P(CudaChain, IsOneOpAfterAnotherInMeasuredWays) {
  numerics().measure = true;
  for (const ChainCase& k : {kPlain, kBottleneck})
    expect_near(run(k, kF16, d_, As::kChain), run(k, kF16, kCpu, As::kOneByOne), 2e-3, 6e-2);
}

// Nothing is fused here, because of channels or kernels that no engine takes, or of the type.
TEST_P(CudaChain, WithoutAFusionEveryBitIsThatOfOneOpAfterAnother) {
  const ChainCase odd{{2, 9, 9, 10}, {{14, 3, 1}, {10, 3, 2}, {6, 1, 1}}, true, true},
      large{{2, 9, 9, 16}, {{16, 7, 1}, {16, 7, 1}}, true, true};
  for (const auto& [k, t] : {std::pair{odd, kF16}, {odd, kBF16}, {odd, kF32}, {large, kF16}}) {
    const Counts before;
    EXPECT_EQ(run(k, t, d_, As::kChain), run(k, t, d_, As::kOneByOne)) << t;
    const Counts after;
    EXPECT_EQ(after.forward + after.weights + after.data, before.forward + before.weights + before.data);
  }
}

TEST_P(CudaChain, RepeatsItselfBitForBitWhereAsked) {
  numerics().deterministic = true;
  EXPECT_EQ(run(kBottleneck, kF16, d_, As::kChain), run(kBottleneck, kF16, d_, As::kChain));
}

// The scale and the bias are rounded to 11 bits: with a mean of r deviations, the error is
// about r 2^-10 deviations.
TEST_P(CudaChain, LosesNoMoreThanTheRoundingOfTheNormWhereMeansAreFarFromZero) {
  const float offset = 3;
  const ChainResult want = run(kBottleneck, kF32, kCpu, As::kOneByOne, offset),
                    plain = run(kBottleneck, kF16, d_, As::kOneByOne, offset);
  const ChainResult got = run(kBottleneck, kF16, d_, As::kChain, offset);
  EXPECT_LT(distance(got.at("y"), want.at("y")), 3e-2);
  EXPECT_LT(distance(got.at("y"), want.at("y")), 4 * distance(plain.at("y"), want.at("y")) + 1e-3);
}

TEST_P(CudaChain, KeepsNoImageBetweenItsConvolutions) {
  const auto kept = [&](As as) {
    const Setting s = setting(kBottleneck, kF16, d_);
    Tape tape;
    tape.watch(s.links[0].w, Tensor(s.links[0].w.shape(), kF32, d_));
    const int64_t before = memory_use(d_).now;
    const Tensor y = forward(kBottleneck, s, as);
    return memory_use(d_).now - before;
  };
  kept(As::kChain), kept(As::kOneByOne);  // the libraries have allocated what they keep
  const int64_t images = 2 * 4 * (14 * 14 + 7 * 7) * 32;
  const int64_t saved = kept(As::kOneByOne) - kept(As::kChain);
  EXPECT_GT(saved, images * 9 / 10);  // except the two rounded vectors, and the rounding of block sizes
  EXPECT_LT(saved, images * 5 / 4);
}

TEST_P(CudaChain, WeightsAreFinalAsEarlyAsOneByOne) {
  const Setting s = setting(kBottleneck, kF16, d_);
  Tape tape;
  std::vector<Tensor> grads;
  for (const ConvBnLink& l : s.links) tape.watch(l.w, grads.emplace_back(l.w.shape(), kF32, d_));
  std::vector<const void*> order, wanted;
  for (size_t i = grads.size(); i-- > 0;) wanted.push_back(grads[i].address());
  tape.backward(sum(mul(forward(kBottleneck, s, As::kChain), s.weights)),
                [&](const Tensor& g) { order.push_back(g.address()); });
  EXPECT_EQ(order, wanted);
}

TEST_P(CudaChain, WhatIsNotWatchedNeedsNoGradient) {
  const ChainResult all = run(kBottleneck, kF16, d_, As::kChain);
  for (const char* name : {"dw0", "dw1", "dgamma0", "dshift1", "dx"}) {
    const Setting s = setting(kBottleneck, kF16, d_);
    const size_t i = size_t(name[strlen(name) - 1] - '0');
    const std::string kind(name, 2);
    const Tensor leaf = kind == "dw"   ? s.links[i].w
                        : kind == "dg" ? s.links[i].norm.gamma
                        : kind == "ds" ? s.links[i].norm.shift
                                       : s.x;
    const Tensor g(leaf.shape(), leaf.dtype(), d_);
    Tape tape;
    tape.watch(leaf, g);
    tape.backward(sum(mul(forward(kBottleneck, s, As::kChain), s.weights)));
    EXPECT_EQ(values(g), all.at(name)) << name;
  }
}

// One more convolution reads the chain's parameters: gradients are added, in f32.
TEST_P(CudaChain, GradientsOfSharedParametersAddUp) {
  const ChainCase twice{{4, 12, 12, 16}, {{16, 3, 1}, {16, 3, 1}, {16, 3, 1}}, true, false};
  const auto gradient = [&](Device d, As as) {
    Setting s = setting(twice, kF16, d);
    s.links[1] = s.links[2] = s.links[0];
    Tape tape;
    const Tensor dw(s.links[0].w.shape(), kF32, d), dgamma({16}, kF32, d);
    tape.watch(s.links[0].w, dw), tape.watch(s.links[0].norm.gamma, dgamma);
    tape.backward(sum(mul(forward(twice, s, as), s.weights)));
    return std::pair{values(dw), values(dgamma)};
  };
  const auto got = gradient(d_, As::kChain), want = gradient(kCpu, As::kOneByOne);
  EXPECT_LT(distance(got.first, want.first), 6e-2);
  EXPECT_LT(distance(got.second, want.second), 6e-2);
}

}  // namespace
}  // namespace skein
