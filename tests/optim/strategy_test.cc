// What every row of strategies.def is tested for; names and options.
#include "optim/strategy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/files.h"
#include "tests/support/numbers/difference.h"
#include "tests/support/sim_trainee.h"
#include "tests/support/strategy_cases.h"

namespace skein {
namespace {

using namespace trainee;

double mean(const std::vector<std::vector<float>>& models, size_t i) {
  double sum = 0;
  for (const auto& x : models) sum += x[i];
  return sum / double(models.size());
}

double spread(const std::vector<std::vector<float>>& models) {
  double worst = 0;
  for (const auto& x : models) worst = differences::worse(worst, largest_difference(x, models[0]));
  return worst;
}

TEST(EveryStrategy, TrainsASmallProblemWithEightRanks) {
  for (const Case& c : cases(8)) {
    // Asynchronous workers are to be about equally fast.
    const Problem p{.noise = 0.1f, .curvature_spread = 0.5f, .pause = c.waits() ? 0 : 1e-3};
    const Models end = begin_and_end(p, c, 8, 80).second;
    double off = 0;
    for (size_t i = 0; i < size_t(p.size); ++i)
      off = differences::worse(off, std::abs(mean(end, i) - (4.5 + double(i) / 16)));
    // Momentum makes residuals swing that have not been sent yet; or chance decides who takes how many steps.
    const std::string what = c.row->name + c.flags;
    const bool coarse =
        what.find("topk") != what.npos || what.starts_with("sparseloco") || what.starts_with("palsgd");
    EXPECT_LT(off, c.waits() && !coarse ? 0.05 : 1) << c.row->name << c.flags;
  }
}

TEST(EveryStrategy, OnlyMixesWhenGradientsAreZero) {
  for (const Case& c : cases(8)) {
    if (!c.row->mixes_only || c.coded()) continue;  // coded rows need equal models at the start
    const Problem p{.zero_gradient = true, .pause = c.waits() ? 0 : 1e-3, .start_spread = 1};
    const auto [begin, end] = begin_and_end(p, c, 8, 60);
    for (size_t i = 0; i < size_t(p.size); ++i)
      EXPECT_NEAR(mean(end, i), mean(begin, i), 2e-5) << c.row->name << c.flags;
    EXPECT_GT(spread(begin), 10);
    EXPECT_LT(spread(end), 1e-2) << c.row->name << c.flags;
  }
}

TEST(EveryStrategy, AloneIsThePlainRuleBitForBit) {
  const Problem p{.momentum = 0.9f, .decay = 0.01f, .noise = 1, .curvature_spread = 1, .nesterov = true};
  std::vector<std::vector<float>> plain;
  {
    Trainee t(p, "sgd", {});
    for (int64_t k = 0; k < 20; ++k) t.step(k), plain.push_back(values(t.x));
  }
  for (const Case& c : cases(1)) {
    if (!c.row->world1_is_sgd) continue;
    const auto h = train(p, c.row->name, c.options, 1, 20);
    for (size_t k = 0; k < 20; ++k)
      ASSERT_EQ(h[k + 1][0], plain[k]) << c.row->name << c.flags << " step " << k;
  }
}

TEST(EveryStrategy, AloneSendsNothingAndFindsTheMinimum) {
  const Problem p{.curvature_spread = 0.5f};
  for (const Case& c : cases(1)) {
    comm::WorldOfOne alone;
    comm::Communicator& peers = alone;
    Trainee t(p, c.row->name, c.options, peers);
    for (int64_t k = 0; k < 120; ++k) t.step(k);
    t.strategy->settle(t.worker);
    t.strategy->finish(t.worker);
    const Tensor model(t.x.shape());
    t.strategy->write_model(t.worker, model);
    for (int64_t i = 0; i < p.size; ++i)
      EXPECT_NEAR(model.data<float>()[i], 1 + double(i) / 16, 0.05) << c.row->name << c.flags;
    EXPECT_EQ(peers.meter().traffic().messages, 0) << c.row->name << c.flags;
  }
}

// Steps [from, to) of a world of `n`, starting from `states` where there are any; leaves the states there.
// All meet at `cut`, too: an asynchronous run is another without that.
void continue_run(const Problem& p, const Case& c, const optim::Options& o, int n, int64_t from, int64_t to,
                  int64_t cut, std::vector<optim::Snapshot>& states) {
  const bool resume = !states.empty();
  states.resize(size_t(n));
  in_local_world(n, [&](comm::Communicator& comm) {
    Trainee t(p, c.row->name, o, comm);
    optim::Snapshot& state = states[size_t(comm.rank())];
    if (resume) state.restore([&](Archive& a) { t.visit(a); });
    for (int64_t k = from; k <= to; ++k) {
      if (k == cut) t.strategy->settle(t.worker);
      if (k < to) t.step(k);
    }
    t.strategy->settle(t.worker);
    state.take([&](Archive& a) { t.visit(a); });
  });
}

TEST(EveryStrategy, ResumedAtAnyStepEqualsUninterrupted) {
  const Problem p{.momentum = 0.9f, .decay = 0.01f, .noise = 1, .start_spread = 0.5f};
  const int64_t steps = 6;
  for (const Case& c : cases(5)) {
    std::vector<optim::Snapshot> whole;
    for (int64_t cut = 0; cut <= steps; ++cut) {
      const Again again(c);
      if (cut == 0 || c.row->asynchronous()) {
        whole.clear();
        continue_run(p, c, again.first, 5, 0, steps, cut, whole);
      }
      std::vector<optim::Snapshot> parts;
      continue_run(p, c, again.second, 5, 0, cut, -1, parts);
      continue_run(p, c, again.second, 5, cut, steps, -1, parts);
      for (size_t r = 0; r < 5; ++r)
        EXPECT_EQ(parts[r], whole[r]) << c.row->name << c.flags << " cut at " << cut;
    }
  }
}

TEST(EveryStrategy, RepeatsBitForBit) {
  const Problem p{.momentum = 0.9f, .noise = 1, .start_spread = 1};
  for (const Case& c : cases(7)) {
    const Again again(c);
    const auto first = train(p, c.row->name, again.first, 7, 9);
    EXPECT_EQ(train(p, c.row->name, again.second, 7, 9), first) << c.row->name;
  }
}

TEST(EveryStrategy, IsTheSameWhereMessagesAreLateDoubledAndOutOfOrder) {
  const Problem p{.momentum = 0.9f, .noise = 1, .start_spread = 1};
  const Weather storm{.seed = 5,
                      .latency = 1e-3,
                      .jitter = 0.02,
                      .bandwidth = 1e9,
                      .loss = 0.2,
                      .duplication = 0.2,
                      .overtaking = true};
  for (const Case& c : cases(5)) {
    const Again again(c);
    const auto stormy = train_simulated(p, c.row->name, again.first, 5, 9, storm);
    EXPECT_EQ(train(p, c.row->name, again.second, 5, 9), stormy) << c.row->name << c.flags;
  }
}

// Rank 0 leaves after three steps. The step that another rank cannot finish then leaves no trace: the state
// is what it was, and x what it is in a run without losses. Asynchronous rows make no such promise. Where
// every step is an exchange among all, none gets ahead of the rank that left.
TEST(EveryStrategy, AStepThatFailsLeavesTheOneBeforeIt) {
  constexpr int64_t kSteps = 30;
  const Problem p{.momentum = 0.9f, .noise = 1};
  for (const Case& c : cases(4)) {
    if (!c.waits()) continue;  // a worker that does not wait does not fail
    const bool whole = !c.row->asynchronous();
    const History straight = whole ? train(p, c.row->name, c.options, 4, kSteps) : History();
    std::vector<int> failures(4, 0);
    in_local_world(4,
                   [&](comm::Communicator& comm) {
                     Trainee t(p, c.row->name, c.options, comm);
                     optim::Snapshot before, after;
                     const auto walk = [&](Archive& a) {
                       a("x", t.x);
                       Under r(a, "rule."), s(a, "strategy.");
                       t.rule->visit(r), t.strategy->visit(s);
                     };
                     for (int64_t k = 0; k < (comm.rank() == 0 ? 3 : whole ? kSteps : 400); ++k) {
                       before.take(walk);
                       try {
                         t.step(k);
                       } catch (const Error&) {
                         after.take(walk);
                         EXPECT_TRUE(!whole || before == after) << c.row->name << c.flags;
                         if (whole) {
                           EXPECT_EQ(values(t.x), straight[size_t(k)][size_t(comm.rank())])
                               << c.row->name << c.flags << " step " << k;
                         }
                         if (c.row->apart == optim::Apart::kOne) { EXPECT_LE(k, 3) << c.row->name; }
                         failures[size_t(comm.rank())] = 1;
                         break;
                       }
                     }
                     // Stay until everybody has noticed.
                     std::this_thread::sleep_for(std::chrono::milliseconds(comm.rank() == 0 ? 350 : 0));
                   },
                   {.deadline = 0.1});
    EXPECT_GE(failures[1] + failures[2] + failures[3], 3) << c.row->name << c.flags;
  }
}

TEST(Strategies, AMistypedNameIsToldItsNearest) {
  const std::string m = testing::message_of<BadOption>([] { optim::make_strategy("sgdd", {}, 1); });
  EXPECT_NE(m.find("did you mean sgd?"), std::string::npos) << m;
  EXPECT_NE(m.find("--algorithm sgdd"), std::string::npos) << m;
}

TEST(Strategies, NamesHaveHyphensAndAreFoundEitherWay) {
  ASSERT_FALSE(optim::strategies().empty());
  for (const optim::StrategyRow& row : optim::strategies()) {
    const std::string name = row.name;
    EXPECT_EQ(name.find('_'), std::string::npos) << name;
    std::string snake = name;
    for (char& c : snake) c = c == '-' ? '_' : c;
    for (const std::string& form : {name, snake}) {
      try {
        optim::make_strategy(form, {}, 1);
      } catch (const BadOption& e) {  // some require a flag
        EXPECT_FALSE(testing::has(e.what(), "no such algorithm")) << e.what();
      }
    }
  }
}

TEST(Options, AreReadByType) {
  optim::Options o;
  o.set("tau", "12"), o.set("alpha", "0.25"), o.set("reset-inner", "on"), o.set("topology", "ring");
  EXPECT_EQ(o.integer("tau", 4), 12);
  EXPECT_EQ(o.number("alpha", 1), 0.25);
  EXPECT_EQ(o.number("tau", 1), 12);
  EXPECT_TRUE(o.flag("reset-inner", false));
  EXPECT_EQ(o.word("topology", "exponential"), "ring");
}

TEST(Options, HaveDefaults) {
  const optim::Options o;
  EXPECT_EQ(o.integer("tau", 4), 4);
  EXPECT_EQ(o.number("alpha", 0.5), 0.5);
  EXPECT_TRUE(o.flag("final-average", true));
  EXPECT_EQ(o.word("topology", "exponential"), "exponential");
}

TEST(Options, RefuseOtherTypesNamingFlagAndValue) {
  optim::Options o;
  o.set("tau", "4x"), o.set("alpha", ""), o.set("final-average", "maybe"), o.set("delay", "1.5");
  for (const std::string& m : {testing::message_of<BadOption>([&] { o.integer("tau", 1); }),
                               testing::message_of<BadOption>([&] { o.number("tau", 1); })}) {
    EXPECT_NE(m.find("--tau 4x"), std::string::npos) << m;
  }
  EXPECT_THROW(o.number("alpha", 1), BadOption);
  EXPECT_THROW(o.integer("delay", 1), BadOption);
  EXPECT_THROW(o.flag("final-average", true), BadOption);
}

TEST(Options, RefuseNumbersOutsideTheirRange) {
  optim::Options o;
  o.set("alpha", "1.25"), o.set("zeta", "-0.5"), o.set("tau", "0");
  EXPECT_EQ(testing::message_of<BadOption>([&] { o.number("alpha", 1, 0, 1); }),
            "--alpha 1.25: allowed is from 0 to 1");
  EXPECT_EQ(testing::message_of<BadOption>([&] { o.number("zeta", 1, 0); }),
            "--zeta -0.5: allowed is 0 or more");
  EXPECT_EQ(testing::message_of<BadOption>([&] { o.integer("tau", 4, 1); }), "--tau 0: allowed is 1 or more");
  EXPECT_EQ(o.number("alpha", 1, 0, 1.25), 1.25);
  EXPECT_EQ(o.number("zeta", 1, -0.5), -0.5);
  EXPECT_EQ(o.integer("tau", 4, 0), 0);
}

}  // namespace
}  // namespace skein
