// Casts, the normalization of images, and what a forward pass keeps for backward.
#include "engine/ops.h"

#include "tests/engine/ops/op_on_device.h"

namespace skein {
namespace {
using namespace testing;

class Ops : public OpOnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Ops, kDevices, device_name);

TEST_P(Ops, CastRoundsAndPassesTheGradientOn) {
  const Tensor x = there(random_uniform({100}, 1));
  for (const DType t : {kBF16, kF16}) EXPECT_TRUE(allclose(cast(x, t), x)) << t;
  EXPECT_EQ(cast(x, kF32).id(), x.id());
  const Tensor w = there(random_uniform({100}, 2));
  for (const DType t : {kBF16, kF16})
    EXPECT_TRUE(allclose(values(gradients([t](const Values& v) { return cast(v[0], t); }, {x}, w)[0]),
                         values(w), tolerance(t)));
}

TEST_P(Ops, NormalizeImageScalesBytesPerChannel) {
  std::vector<uint8_t> bytes(2 * 9 * 11 * 3);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * 11);
  const std::vector<float> mean{0.4f, 0.5f, 0.6f}, std{0.2f, 0.3f, 0.25f};
  std::vector<double> want;
  for (size_t i = 0; i < bytes.size(); ++i) want.push_back((bytes[i] / 255.0 - mean[i % 3]) / std[i % 3]);
  const Tensor x = there(Tensor::of({2, 9, 11, 3}, bytes));
  EXPECT_TRUE(allclose(normalize_image(x, mean, std, kF32), want));
  for (const DType t : {kBF16, kF16}) EXPECT_TRUE(allclose(normalize_image(x, mean, std, t), want)) << t;
  EXPECT_THROW(normalize_image(x, {0.5f}, {0.5f}, kF32), Error);
}

// From 8 MiB on pixels are written past the caches.
TEST_P(Ops, LargeBatchesAreNormalizedAsTheirHalves) {
  const int64_t half = int64_t(3) * 501 * 503 * 3;
  std::vector<uint8_t> bytes(size_t(2 * half));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * 11 + i / 256);
  const std::vector<float> mean{0.4f, 0.5f, 0.6f}, std{0.2f, 0.3f, 0.25f};
  const Tensor x = there(Tensor::of({6, 501, 503, 3}, bytes));
  for (const DType t : {kF32, kBF16, kF16}) {
    const std::vector<double> all = values(normalize_image(x, mean, std, t));
    std::vector<double> halves = values(normalize_image(x.view({3, 501, 503, 3}), mean, std, t));
    const std::vector<double> second = values(normalize_image(x.view({3, 501, 503, 3}, half), mean, std, t));
    halves.insert(halves.end(), second.begin(), second.end());
    EXPECT_EQ(all, halves) << t;
  }
}

// A tape that wants the gradient of an image of 1 MiB. The image stays in memory only if an op keeps it.
struct Kept {
  const Device d;
  const Tensor leaf = Tensor::zeros({1, 128, 256, 16}, kF32, d), grad = leaf.clone();
  const int64_t image = leaf.size() * 2;
  Tape tape;
  explicit Kept(Device d) : d(d) { tape.watch(leaf, grad); }
  template <class F>
  int64_t by(F f) const {
    const int64_t before = memory_use(d).now;
    f(cast(leaf, kBF16));
    return memory_use(d).now - before;
  }
};

TEST_P(Ops, PoolsAndMeansKeepNoImages) {
  const Kept kept(GetParam());
  const int64_t places = kept.image / 8;  // of the maxima: a byte for every fourth pixel of 16 bits
  EXPECT_EQ(kept.by([](const Tensor& x) { max_pool2d(x, {}); }), places);
  EXPECT_EQ(kept.by([](const Tensor& x) { avg_pool2d(x, {}); }), 0);
  EXPECT_EQ(kept.by([](const Tensor& x) { global_avg_pool(x); }), 0);
}

TEST_P(Ops, WhatAGradientDoesNotReadIsNotKept) {
  const Kept kept(GetParam());
  const int64_t image = kept.image;
  const Shape s = kept.leaf.shape();
  EXPECT_EQ(kept.by([](const Tensor& x) { neg(x); }), 0);
  EXPECT_EQ(kept.by([](const Tensor& x) { add(x, x); }), 0);
  EXPECT_EQ(kept.by([](const Tensor& x) { reshape(x, {-1}); }), 0);
  EXPECT_EQ(kept.by([](const Tensor& x) { transpose(x, {0, 3, 1, 2}); }), 0);
  EXPECT_EQ(kept.by([](const Tensor& x) { pad(x, {{0, 0}, {0, 0}, {0, 0}, {8, 8}}); }), 0);
  EXPECT_EQ(kept.by([](const Tensor& x) { concat({x, x}, 0); }), 0);
  EXPECT_EQ(kept.by([](const Tensor& x) { cast(x, kF32); }), 0);
  EXPECT_EQ(kept.by([](const Tensor& x) { dropout(x, 0.5f, draw(1)); }), 0);
  EXPECT_EQ(kept.by([](const Tensor& x) { relu(x); }), image) << "its result";
  EXPECT_EQ(kept.by([](const Tensor& x) { square(x); }), image) << "its argument";
  EXPECT_EQ(kept.by([](const Tensor& x) { mul(x, x); }), image) << "its argument";
  EXPECT_EQ(kept.by([&](const Tensor& x) { mul(x, Tensor::zeros(s, kBF16, kept.d)); }), 2 * image);
  EXPECT_EQ(kept.by([](const Tensor& x) { log_softmax(x); }), image) << "its result";
}

TEST_P(Ops, ANormKeepsNoImageButItsInput) {
  const Kept kept(GetParam());
  const auto channels = [&](float v) {
    const Tensor t({16}, kF32, GetParam());
    fill(t, v);
    return t;
  };
  const NormState s{channels(1), channels(0), channels(0), channels(1)};
  const Tensor w = Tensor::zeros({16, 1, 1, 16}, kF32, GetParam());
  const int64_t small = 4096;  // the channels' statistics
  for (const bool relu : {false, true}) {
    const NormMode mode{.training = true, .relu = relu};
    EXPECT_LT(kept.by([&](const Tensor& x) { batch_norm(x, s, mode); }), kept.image + small);
    EXPECT_LT(kept.by([&](const Tensor& x) { conv_bn(x, w, {}, s, mode); }), 2 * kept.image + small);
  }
  const auto add = [&](bool relu) {
    return kept.by([&](const Tensor& x) {
      const NormMode mode{.training = true, .relu = relu, .residual = cast(kept.leaf, kBF16)};
      conv_bn(x, w, {}, s, mode);
    });
  };
  EXPECT_LT(add(false), 2 * kept.image + small);
  if (GetParam().is_cuda()) {
    EXPECT_LT(add(true), 2 * kept.image + kept.image / 16 + small);
  }  // includes the mask's bits
}

}  // namespace
}  // namespace skein
