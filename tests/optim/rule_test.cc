// What every row of rules.def is tested for: alone, and under every algorithm.
#include "optim/rule.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/random.h"
#include "engine/vectors/narrow.h"
#include "tests/support/files.h"
#include "tests/support/numbers/difference.h"
#include "tests/support/strategy_cases.h"

namespace skein {
namespace {

using namespace trainee;
using optim::RuleRow;

Tensor random(uint64_t step, int64_t n) {
  Tensor t({n});
  fill_normal(t, {.seed = 7, .purpose = Purpose::kTest, .step = step}, 0, 1);
  return t;
}
bool same(const Tensor& a, const Tensor& b) { return std::memcmp(a.raw(), b.raw(), size_t(a.bytes())) == 0; }

// Three segments: a hidden matrix, one of the head, and a bias.
Segments three(int64_t front = 60, float decay = 1) {
  return {
      {{.begin = 0, .end = 64, .rows = 6, .columns = front / 6, .hidden = true, .rate = 0.5f, .decay = decay},
       {.begin = 64, .end = 192, .rows = 10, .columns = 12, .decay = decay},
       {.begin = 192, .end = 256, .columns = 50}},
      kCpu};
}

TEST(EveryRule, ZeroesStayZeroSoThatPaddingDoes) {
  for (const RuleRow& row : optim::rules()) {
    const Tensor x = Tensor::zeros({256}), g = Tensor::zeros({256});
    const auto rule = optim::make_rule(row.name, {}, {.like = x, .segments = three(), .weight_decay = 0.1f});
    for (int k = 0; k < 3; ++k) rule->step(x, g, 0.1f);
    EXPECT_EQ(norm(x), 0) << row.name;
  }
}

TEST(EveryRule, VisitedStateContinuesBitForBit) {
  for (const RuleRow& row : optim::rules()) {
    const auto make = [&](const Tensor& x) {
      return optim::make_rule(row.name, {}, {.like = x, .segments = three(), .weight_decay = 0.1f});
    };
    const Tensor x = random(0, 256);
    const auto rule = make(x);
    for (uint64_t k = 1; k < 4; ++k) rule->step(x, random(k, 256), 0.1f);
    optim::Snapshot saved;
    saved.take([&](Archive& a) { rule->visit(a); });
    const Tensor y = x.clone();
    const auto resumed = make(y);
    saved.restore([&](Archive& a) { resumed->visit(a); });
    rule->step(x, random(9, 256), 0.1f);
    resumed->step(y, random(9, 256), 0.1f);
    EXPECT_TRUE(same(x, y)) << row.name;
  }
}

TEST(EveryRule, ResetForgetsAll) {
  for (const RuleRow& row : optim::rules()) {
    const auto make = [&](const Tensor& x) {
      return optim::make_rule(row.name, {}, {.like = x, .segments = three(), .weight_decay = 0.1f});
    };
    const Tensor x = random(0, 256);
    const auto rule = make(x);
    rule->step(x, random(1, 256), 0.1f);
    rule->reset();
    const Tensor y = x.clone();
    rule->step(x, random(2, 256), 0.1f);
    make(y)->step(y, random(2, 256), 0.1f);
    EXPECT_TRUE(same(x, y)) << row.name;
  }
}

// After an overflow x, the state and the count of steps stay as they are.
TEST(EveryRule, DoesNothingWhereItIsOff) {
  for (const RuleRow& row : optim::rules()) {
    float on = 1;
    const Tensor x = random(0, 256);
    const auto rule =
        optim::make_rule(row.name, {}, {.like = x, .segments = three(), .weight_decay = 0.1f, .on = &on});
    rule->step(x, random(1, 256), 0.1f);
    const Tensor before = x.clone();
    optim::Snapshot then, now;
    const auto walk = [&](Archive& a) { rule->visit(a); };
    then.take(walk);
    const Tensor bad = random(2, 256);
    bad.data<float>()[5] = INFINITY;
    on = 0;
    rule->step(x, bad, 0.1f);
    now.take(walk);
    EXPECT_TRUE(same(x, before)) << row.name;
    EXPECT_EQ(then, now) << row.name;
    on = 1;
    rule->step(x, random(3, 256), 0.1f);
    EXPECT_TRUE(all_finite(x) && !same(x, before)) << row.name;
  }
}

// A segment at half the rate is where the whole vector would be at half the rate.
TEST(EveryRule, ASegmentTakesItsPartOfTheRate) {
  for (const RuleRow& row : optim::rules()) {
    const Tensor x = random(0, 256), y = x.clone();
    std::vector<Segments::Segment> whole = three().all();
    whole[0].rate = 1;
    const auto parts = optim::make_rule(row.name, {}, {.like = x, .segments = three(), .weight_decay = 0.1f});
    const auto plain =
        optim::make_rule(row.name, {}, {.like = y, .segments = {whole, kCpu}, .weight_decay = 0.1f});
    parts->step(x, random(1, 256), 0.2f);
    plain->step(y, random(1, 256), 0.1f);
    for (int64_t i = 0; i < 60; ++i)
      EXPECT_NEAR(x.data<float>()[i], y.data<float>()[i], 1e-6) << row.name << ' ' << i;
    EXPECT_GT(std::abs(x.data<float>()[70] - y.data<float>()[70]), 1e-6) << row.name;
  }
}

// Its copy in 16 bits is written along with x, or is known not to be.
TEST(EveryRule, KeepsTheNarrowCopyOrSaysThatItIsOld) {
  for (const RuleRow& row : optim::rules()) {
    const Tensor x = random(0, 256);
    keep_narrow(x, kBF16);
    const auto rule = optim::make_rule(row.name, {}, {.like = x, .segments = three(), .weight_decay = 0.1f});
    for (uint64_t k = 1; k < 3; ++k) {
      rule->step(x, random(k, 256), 0.1f);
      const TrustNarrow trust(x);
      const Tensor low = narrow_of(x, kBF16);
      for (int64_t i = 0; i < 256; ++i)
        ASSERT_EQ(float(low.data<bf16>()[i]), float(bf16(x.in<float>()[i]))) << row.name << ' ' << i;
    }
  }
}

// Every algorithm takes every optimizer, or refuses it in one line.
bool refuses(const std::string& algorithm, const std::string& optimizer) {
  optim::Options o =
      options({{"optimizer", optimizer}, {"switch-step", "2"}, {"qsr-c", "0.1"}, {"groups", "1"}});
  try {
    optim::make_strategy(algorithm, o, algorithm == "sgd" ? 1 : 4);
    return false;
  } catch (const BadOption& e) {
    EXPECT_TRUE(testing::has(e.what(), "--optimizer " + optimizer) && testing::has(e.what(), algorithm))
        << e.what();
    return true;
  }
}
TEST(EveryRule, IsTakenByEveryAlgorithmButThoseWithMomentaOfTheirOwn) {
  for (const optim::StrategyRow& row : optim::strategies()) {
    const std::string name = row.name;
    const bool own = name == "gem" || name == "eamsgd" || name == "eamsgd-async" || name == "qg-dsgdm";
    for (const RuleRow& rule : optim::rules())
      EXPECT_EQ(refuses(name, rule.name), own && std::string(rule.name) != "sgd") << name << ' ' << rule.name;
  }
}

// The rows without a server that take it. A third of the numbers at a time is too coarse for optimizers that
// move all of them by as much, in so few steps.
std::vector<Case> cases_for(const RuleRow& rule, int world) {
  std::vector<Case> some;
  for (Case& c : cases(world))
    if (!refuses(c.row->name, rule.name) && c.flags.find("topk") == std::string::npos)
      some.push_back(std::move(c));
  return some;
}
Problem problem_of(const RuleRow& rule, Problem p) {
  p.optimizer = rule.name;
  if (p.optimizer == "adamw" || p.optimizer == "gpa") p.lr = 0.1f;
  if (p.optimizer == "lamb") p.lr = 0.05f;
  if (p.optimizer == "muon") p.lr = 0.5f, p.optimizer_flags = "--muon-momentum 0.5";  // all of x is one row
  if (p.optimizer == "gpa") p.optimizer_flags = "--gpa-x 0.5";
  return p;
}

TEST(EveryRule, TrainsASmallProblemUnderEveryAlgorithm) {
  for (const RuleRow& rule : optim::rules())
    for (const Case& c : cases_for(rule, 4)) {
      const Problem p = problem_of(rule, {.noise = 0.1f, .pause = c.waits() ? 0 : 1e-3});
      const Models end = begin_and_end(p, c, 4, 240).second;
      double off = 0;
      for (size_t i = 0; i < size_t(p.size); ++i) {
        double mean = 0;
        for (const auto& x : end) mean += x[i] / double(end.size());
        off = differences::worse(off, std::abs(mean - (2.5 + double(i) / 16)));
      }
      EXPECT_LT(off, 1) << rule.name << ' ' << c.row->name << c.flags;
    }
}

TEST(EveryRule, ResumesBitForBitUnderEveryAlgorithm) {
  for (const RuleRow& rule : optim::rules()) {
    const Problem p = problem_of(rule, {.decay = 0.01f, .noise = 1, .start_spread = 0.5f});
    for (const Case& c : cases_for(rule, 3)) {
      if (c.row->asynchronous()) continue;  // one order of arrivals is not another
      const auto run = [&](int64_t cut) {
        std::vector<optim::Snapshot> states(3);
        for (const auto& [from, to] : {std::pair<int64_t, int64_t>(0, cut), {cut, 5}})
          in_local_world(3, [&, from = from, to = to](comm::Communicator& comm) {
            Trainee t(p, c.row->name, c.options, comm);
            optim::Snapshot& s = states[size_t(comm.rank())];
            if (from > 0) s.restore([&](Archive& a) { t.visit(a); });
            for (int64_t k = from; k < to; ++k) t.step(k);
            t.strategy->settle(t.worker);
            s.take([&](Archive& a) { t.visit(a); });
          });
        return states;
      };
      const auto whole = run(5), parts = run(3);
      for (size_t r = 0; r < 3; ++r)
        EXPECT_EQ(parts[r], whole[r]) << rule.name << ' ' << c.row->name << c.flags;
    }
  }
}

// As a program hands out its parameters: a matrix, its bias, the next matrix. The gradient is zero.
TEST(Rules, AlgorithmsWithMomentaOfTheirOwnDecayTheSegmentsThatDecay) {
  const std::vector<Segments::Segment> all = {
      {.begin = 0, .end = 64, .rows = 8, .columns = 8, .decay = 1},
      {.begin = 64, .end = 128, .columns = 50},
      {.begin = 128, .end = 192, .rows = 4, .columns = 16, .decay = 1}};
  for (const char* row : {"qg-dsgdm", "gem"})
    in_local_world(1, [&](comm::Communicator& c) {
      const Tensor x({192}), g = Tensor::zeros({192});
      fill(x, 1.f);
      const auto rule =
          optim::make_rule("sgd", {}, {.like = x, .segments = {all, kCpu}, .weight_decay = 0.25f});
      const auto strategy = optim::make_strategy(row, {}, 1);
      optim::Worker me{x, g, {}, *rule, 0.5, c, 1, [](const optim::Slices&) { return Tensor::zeros({1}); }};
      strategy->start(me);
      strategy->iterate(me, 0);
      for (int64_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(x.data<float>()[i], i / 64 == 1 ? 1.f : 1 - 0.5f * 0.25f) << row << ' ' << i;
    });
}

TEST(Rules, AMistypedNameIsToldItsNearest) {
  const std::string m = testing::message_of<BadOption>([] { optim::rule_row("adamv"); });
  EXPECT_NE(m.find("--optimizer adamv"), std::string::npos) << m;
  EXPECT_NE(m.find("did you mean adamw?"), std::string::npos) << m;
}

}  // namespace
}  // namespace skein
