// The rule against a scalar reference, the table of strategies, and the reading of options.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "comm/communicator/world_of_one.h"
#include "engine/random.h"
#include "optim/strategy.h"

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

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const BadOption& e) { return e.what(); }
  return "nothing was thrown";
}

TEST(Strategies, SgdIsTheRuleAndItsLossIsPassedOn) {
  Tensor x = random(0), y = x.clone();
  const auto rule = sgd(x, {.momentum = 0.9f}), alone = sgd(y, {.momentum = 0.9f});
  comm::WorldOfOne peers;
  Worker me{
      .x = x, .g = Tensor({kSize}), .buffers = {}, .rule = *rule, .lr = 0.1f, .comm = peers, .oracle = {}};
  me.oracle = [&](const Slices&) {
    copy(me.g, random(5));
    return Tensor::of<float>({1}, {2.5f});
  };
  const auto strategy = make_strategy("sgd", {}, 1);
  strategy->start(me);
  EXPECT_EQ(strategy->iterate(me, 0).item(), 2.5f);
  strategy->finish(me);
  alone->step(y, random(5), 0.1f);
  EXPECT_EQ(0, memcmp(x.raw(), y.raw(), size_t(x.bytes())));
}

TEST(Strategies, SgdRefusesCompany) {
  const std::string m = message_of([] { make_strategy("sgd", {}, 4); });
  EXPECT_NE(m.find("--workers 4"), std::string::npos) << m;
  EXPECT_NE(m.find("--workers 1"), std::string::npos) << m;
}

TEST(Strategies, AMistypedNameIsToldItsNearest) {
  const std::string m = message_of([] { make_strategy("sgdd", {}, 1); });
  EXPECT_NE(m.find("did you mean sgd?"), std::string::npos) << m;
  EXPECT_NE(m.find("--algorithm sgdd"), std::string::npos) << m;
}

TEST(Strategies, NamesHaveHyphensAndAreFoundEitherWay) {
  ASSERT_FALSE(strategies().empty());
  for (const StrategyRow& row : strategies()) {
    const std::string name = row.name;
    EXPECT_EQ(name.find('_'), std::string::npos) << name;
    std::string snake = name;
    for (char& c : snake) c = c == '-' ? '_' : c;
    for (const std::string& form : {name, snake}) {
      const std::string m = message_of([&] { make_strategy(form, {}, 1); });
      EXPECT_EQ(m.find("no such algorithm"), std::string::npos) << m;
    }
  }
}

TEST(Options, AreReadByType) {
  Options o;
  o.set("tau", "12"), o.set("alpha", "0.25"), o.set("reset-inner", "on"), o.set("topology", "ring");
  EXPECT_EQ(o.integer("tau", 4), 12);
  EXPECT_EQ(o.number("alpha", 1), 0.25);
  EXPECT_EQ(o.number("tau", 1), 12);
  EXPECT_TRUE(o.flag("reset-inner", false));
  EXPECT_EQ(o.word("topology", "exponential"), "ring");
}

TEST(Options, HaveDefaults) {
  const Options o;
  EXPECT_EQ(o.integer("tau", 4), 4);
  EXPECT_EQ(o.number("alpha", 0.5), 0.5);
  EXPECT_TRUE(o.flag("final-average", true));
  EXPECT_EQ(o.word("topology", "exponential"), "exponential");
}

TEST(Options, RefuseOtherTypesNamingFlagAndValue) {
  Options o;
  o.set("tau", "4x"), o.set("alpha", ""), o.set("final-average", "maybe"), o.set("delay", "1.5");
  for (const std::string& m :
       {message_of([&] { o.integer("tau", 1); }), message_of([&] { o.number("tau", 1); })}) {
    EXPECT_NE(m.find("--tau 4x"), std::string::npos) << m;
  }
  EXPECT_THROW(o.number("alpha", 1), BadOption);
  EXPECT_THROW(o.integer("delay", 1), BadOption);
  EXPECT_THROW(o.flag("final-average", true), BadOption);
}

TEST(Options, RefuseNumbersOutsideTheirRange) {
  Options o;
  o.set("alpha", "1.25"), o.set("zeta", "-0.5"), o.set("tau", "0");
  EXPECT_EQ(message_of([&] { o.number("alpha", 1, 0, 1); }), "--alpha 1.25: allowed is from 0 to 1");
  EXPECT_EQ(message_of([&] { o.number("zeta", 1, 0); }), "--zeta -0.5: allowed is 0 or more");
  EXPECT_EQ(message_of([&] { o.integer("tau", 4, 1); }), "--tau 0: allowed is 1 or more");
  EXPECT_EQ(o.number("alpha", 1, 0, 1.25), 1.25);
  EXPECT_EQ(o.number("zeta", 1, -0.5), -0.5);
  EXPECT_EQ(o.integer("tau", 4, 0), 0);
}

}  // namespace
}  // namespace skein::optim
