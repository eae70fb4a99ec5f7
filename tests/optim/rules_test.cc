// The local rule, SGD with momentum, against a scalar reference.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "engine/archive.h"
#include "engine/random.h"
#include "engine/vectors/vec.h"
#include "optim/rule.h"

namespace skein::optim {
namespace {

constexpr int64_t kSize = 1000, kDecayed = 700;

Tensor random(uint64_t step, int64_t n = kSize) {
  Tensor t({n});
  fill_normal(t, {.seed = 7, .purpose = Purpose::kTest, .step = step}, 0, 1);
  return t;
}

// Collects or replays the fields of a visit in memory.
class Memory final : public Archive {
 public:
  bool loading() const override { return loading_; }
  void operator()(const std::string& n, Tensor& v) override {
    if (loading_)
      copy_bytes(v, tensors.at(n));
    else
      tensors[n] = v.clone();
  }
  void operator()(const std::string&, int64_t&) override {}
  void operator()(const std::string&, double&) override {}
  void operator()(const std::string&, std::string&) override {}
  void load() { loading_ = true; }
  std::map<std::string, Tensor> tensors;

 private:
  bool loading_ = false;
};

// algorithms.md, one element in double.
struct Reference {
  double x, v = 0;
  void step(double g, double at, double lr, const SgdOptions& o, bool decays) {
    const double d = g + (decays ? double(o.weight_decay) * at : 0);
    v = double(o.momentum) * v + d;
    x -= lr * (o.nesterov ? d + double(o.momentum) * v : v);
  }
};

void compare(const SgdOptions& o, bool elsewhere) {
  Tensor x = random(0);
  std::vector<Reference> reference;
  for (int64_t i = 0; i < kSize; ++i) reference.push_back({x.data<float>()[i]});
  const auto rule = sgd(x, o);
  for (uint64_t k = 1; k <= 10; ++k) {
    const Tensor g = random(10 + k), at = elsewhere ? random(100 + k) : x;
    const double lr = 0.1 / double(k);
    for (int64_t i = 0; i < kSize; ++i) {
      const double point = elsewhere ? double(at.data<float>()[i]) : reference[size_t(i)].x;
      reference[size_t(i)].step(g.data<float>()[i], point, lr, o, i < o.decayed);
    }
    rule->step(x, g, at, lr);
    for (int64_t i = 0; i < kSize; ++i)
      ASSERT_NEAR(x.data<float>()[i], reference[size_t(i)].x, 1e-5) << "step " << k << " element " << i;
  }
}

TEST(Sgd, PlainStepFollowsTheReference) { compare({}, false); }
TEST(Sgd, MomentumFollowsTheReference) { compare({.momentum = 0.9f}, false); }
TEST(Sgd, DecayStopsAtTheSplit) { compare({.weight_decay = 0.1f, .decayed = kDecayed}, false); }
TEST(Sgd, NesterovWithDecayFollowsTheReference) {
  compare({.momentum = 0.9f, .weight_decay = 0.05f, .nesterov = true, .decayed = kDecayed}, false);
}
TEST(Sgd, DecayIsTakenWhereTheGradientWas) {
  compare({.momentum = 0.9f, .weight_decay = 0.1f, .decayed = kDecayed}, true);
  compare({.momentum = 0.9f, .weight_decay = 0.1f, .nesterov = true, .decayed = kSize}, true);
  compare({.weight_decay = 0.1f, .decayed = kDecayed}, true);
}

TEST(Sgd, TraceOfMomentumAndDecay) {  // one worker of loss (x - 2)^2 / 2, rate 0.1, momentum 0.9, decay 0.1
  Tensor x = Tensor::zeros({1}), g({1});
  const auto rule = sgd(x, {.momentum = 0.9f, .weight_decay = 0.1f, .decayed = 1});
  for (double expected : {0.2, 0.558, 1.01882}) {
    g.data<float>()[0] = x.data<float>()[0] - 2;
    rule->step(x, g, 0.1f);
    EXPECT_NEAR(x.item(), expected, 1e-6);
  }
}

TEST(Sgd, ZeroesStayZeroSoThatPaddingDoes) {
  Tensor x = Tensor::zeros({64}), g = Tensor::zeros({64});
  const auto rule = sgd(x, {.momentum = 0.9f, .weight_decay = 0.1f, .nesterov = true, .decayed = 64});
  for (int k = 0; k < 3; ++k) rule->step(x, g, 0.1f);
  EXPECT_EQ(norm(x), 0);
}

TEST(Sgd, VisitedStateContinuesBitForBit) {
  const SgdOptions o{.momentum = 0.9f, .weight_decay = 0.1f, .decayed = kDecayed};
  Tensor x = random(0);
  const auto rule = sgd(x, o);
  for (uint64_t k = 0; k < 3; ++k) rule->step(x, random(10 + k), 0.1f);
  Memory saved;
  rule->visit(saved);
  saved.load();
  Tensor y = x.clone();
  const auto resumed = sgd(y, o);
  resumed->visit(saved);
  rule->step(x, random(20), 0.1f);
  resumed->step(y, random(20), 0.1f);
  EXPECT_EQ(0, memcmp(x.raw(), y.raw(), size_t(x.bytes())));
}

TEST(Sgd, ResetForgetsTheMomentum) {
  Tensor x = random(0);
  const auto rule = sgd(x, {.momentum = 0.9f});
  rule->step(x, random(1), 0.1f);
  rule->reset();
  Tensor y = x.clone();
  rule->step(x, random(2), 0.1f);
  sgd(y, {.momentum = 0.9f})->step(y, random(2), 0.1f);
  EXPECT_EQ(0, memcmp(x.raw(), y.raw(), size_t(x.bytes())));
}

TEST(Sgd, RefusesImpossibleOptions) {
  const Tensor x = random(0);
  EXPECT_THROW(sgd(x, {.momentum = 1}), BadOption);
  EXPECT_THROW(sgd(x, {.momentum = NAN}), BadOption);
  EXPECT_THROW(sgd(x, {.weight_decay = -1}), BadOption);
  EXPECT_THROW(sgd(x, {.nesterov = true}), BadOption);
  EXPECT_THROW(sgd(x, {.decayed = kSize + 1}), Error);
}

}  // namespace
}  // namespace skein::optim
