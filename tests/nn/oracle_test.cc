// The gradient of a model's loss as one vector: correct, complete, in slices and in passes.
#include "nn/oracle.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/vectors/loss_scale.h"
#include "engine/vectors/mix.h"
#include "nn/models.h"
#include "tests/support/numbers/difference.h"

namespace skein::nn {
namespace {

constexpr int64_t kRows = 12;

// A model without randomness and a batch to classify.
struct Task {
  explicit Task(OracleOptions o = {}) : oracle(*model, flat, std::move(o)) {
    fill_normal(images, {.seed = 3}, 0, 1);
    for (int64_t i = 0; i < kRows; ++i) labels.data<int32_t>()[i] = int32_t(i % 4);
  }
  // Pass p's share of the batch's mean loss.
  Tensor loss(int64_t p, int64_t passes) const {
    const int64_t rows = kRows / passes;
    const Tensor part = images.view({rows, 6, 6, 1}, p * rows * 36);
    const Targets targets{labels.view({rows}, p * rows), {}, 1.f, kRows, nullptr};
    return cross_entropy(model->forward(part), targets, 0.f);
  }
  float gradient(int64_t passes, const GradReady& ready = {}) {
    return oracle
        .gradient(
            passes, [&](int64_t p) { return loss(p, passes); }, ready)
        .item();
  }
  std::vector<float> g() const { return {flat.g.data<float>(), flat.g.data<float>() + flat.g.size()}; }

  static Flat lay_out(Module& m) {
    Flat f = flatten(m, allocator(kCpu));
    initialize(m, 5);
    return f;
  }
  const std::unique_ptr<Module> model = make_model("mlp", {6, 6, 1, 4});
  const Flat flat = lay_out(*model);
  const Tensor images{{kRows, 6, 6, 1}}, labels{{kRows}, kI32};
  Oracle oracle;
};

// Tests the elements with the largest gradients, which a difference of two losses measures best.
TEST(Oracle, IsTheSlopeOfTheLoss) {
  Task t;
  const float before = t.gradient(1);
  const std::vector<float> g = t.g();
  const NoTape off;
  EXPECT_EQ(t.loss(0, 1).item(), before);
  int checked = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    if (std::abs(g[i]) < 0.02f) continue;
    float& x = t.flat.x.data<float>()[i];
    const float was = x, h = 1e-2f;
    x = was + h;
    const float above = t.loss(0, 1).item();
    x = was - h;
    const float below = t.loss(0, 1).item();
    x = was;
    EXPECT_NEAR((above - below) / (2 * h), g[i], 0.05f * std::abs(g[i]) + 1e-3f) << i;
    ++checked;
  }
  EXPECT_GT(checked, 10);
}

TEST(Oracle, SlicesAreTheWholeGradientOnce) {
  Task whole, sliced({.slice_bytes = 1024});
  whole.gradient(1);
  std::vector<float> handed(size_t(sliced.flat.g.size()), NAN);
  int slices = 0;
  sliced.gradient(1, [&](const Tensor& s) {
    const int64_t at = s.data<float>() - sliced.flat.g.data<float>();
    for (int64_t i = 0; i < s.size(); ++i) {
      EXPECT_TRUE(std::isnan(handed[size_t(at + i)])) << "element " << at + i << " comes twice";
      handed[size_t(at + i)] = s.data<float>()[i];
    }
    ++slices;
  });
  EXPECT_GT(slices, 1);
  EXPECT_EQ(handed, whole.g());
}

TEST(Oracle, PassesAddUpToTheirBatch) {
  Task one, three({.most_passes = 3}), sliced({.slice_bytes = 1024, .most_passes = 3});
  const float loss = one.gradient(1);
  EXPECT_NEAR(three.gradient(3), loss, 1e-6f);
  EXPECT_LT(differences::largest_difference(three.g(), one.g()), 1e-6f);
  std::vector<float> handed(one.g().size());
  sliced.gradient(3, [&](const Tensor& s) {
    std::copy(s.data<float>(), s.data<float>() + s.size(),
              handed.begin() + (s.data<float>() - sliced.flat.g.data<float>()));
  });
  EXPECT_EQ(handed, three.g());
}

TEST(Oracle, UnscalesAndClipsTheWholeAndSlicesOnlyWhenTheirSumIsJudged) {
  const double clip = 0.01;
  LossScale scale(kCpu, false, 8);
  Task plain, scaled({.scale = &scale}), clipped({.clip_norm = clip}),
      sliced({.clip_norm = clip, .scale = &scale});
  plain.gradient(1);
  ASSERT_GT(norm(plain.flat.g), 2 * clip);
  scaled.gradient(1);
  EXPECT_EQ(scaled.g(), plain.g());  // a power of two
  clipped.gradient(1);
  EXPECT_NEAR(norm(clipped.flat.g), clip, 1e-6);
  sliced.gradient(1, [](const Tensor&) {});
  std::vector<float> eightfold = plain.g();
  for (float& v : eightfold) v *= 8;
  EXPECT_EQ(sliced.g(), eightfold);
  sliced.oracle.judge();
  EXPECT_EQ(sliced.g(), clipped.g());
}

TEST(Oracle, AWorkerWithoutSamplesHandsOutTheSameSlices) {
  Task t({.slice_bytes = 1024});
  const auto slices_of = [&](const std::function<void(const GradReady&)>& f) {
    std::vector<std::pair<int64_t, int64_t>> slices;
    f([&](const Tensor& s) { slices.emplace_back(s.data<float>() - t.flat.g.data<float>(), s.size()); });
    return slices;
  };
  const auto with = slices_of([&](const GradReady& ready) { t.gradient(1, ready); });
  const auto without = slices_of([&](const GradReady& ready) { t.oracle.no_gradient(ready); });
  EXPECT_EQ(with, without);
  EXPECT_EQ(norm(t.flat.g), 0);
}

TEST(Oracle, LetsMessagesMoveOnAfterEachLayer) {
  int between = 0;
  Task t({.between = [&] { ++between; }});
  t.gradient(1);
  EXPECT_EQ(size_t(between), t.model->params().size());
}

}  // namespace
}  // namespace skein::nn
