// What every row of strategies.def is tested for, the traces to the digit, and what a row promises
// of its own.
#include "optim/strategy.h"

#include <cmath>
#include <fstream>

#include "comm/transports/delayed_transport.h"
#include "optim/consensus.h"
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
  for (const auto& x : models) worst = std::max(worst, largest_difference(x, models[0]));
  return worst;
}

TEST(EveryStrategy, TrainsASmallProblemWithEightRanks) {
  for (const Case& c : cases(8)) {
    // Workers that wait for nobody are to be about equally fast.
    const Problem p{.noise = 0.1f, .curvature_spread = 0.5f, .pause = c.waits() ? 0 : 1e-3};
    const Models end = begin_and_end(p, c, 8, 80).second;
    double off = 0;
    for (size_t i = 0; i < size_t(p.size); ++i)
      off = std::max(off, std::abs(mean(end, i) - (4.5 + double(i) / 16)));
    EXPECT_LT(off, c.waits() ? 0.05 : 1) << c.row->name << c.flags;
  }
}

TEST(EveryStrategy, OnlyMixesWhenGradientsAreZero) {
  for (const Case& c : cases(8)) {
    if (!c.row->mixes_only) continue;
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

TEST(EveryStrategy, IsTheSameOverATransportThatDelaysDoublesAndReorders) {
  const Problem p{.momentum = 0.9f, .noise = 1, .start_spread = 1};
  const comm::Weather storm{
      .seed = 5, .latency = 1e-3, .jitter = 0.02, .bandwidth = 1e9, .loss = 0.2, .duplication = 0.2};
  for (const Case& c : cases(5)) {
    auto world = comm::local_world(5);
    for (auto& t : world) t = std::make_unique<comm::DelayedTransport>(std::move(t), storm);
    const Again again(c);
    const auto stormy = train(p, c.row->name, again.first, std::move(world), 9);
    EXPECT_EQ(train(p, c.row->name, again.second, 5, 9), stormy) << c.row->name << c.flags;
  }
}

// Rank 0 leaves after three steps. The step that another rank cannot finish then leaves no trace: the state
// is what it was, and x what it is in a run that loses nobody. Asynchronous rows make no such promise. Where
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

// ---- contracts section 6, to 1e-6: losses 0.5 (x - (i+1))^2, start 0, rate 0.1
// -----------------------------------------
void expect_trace(const std::string& algorithm, const optim::Options& o, const Problem& p,
                  const std::vector<std::vector<double>>& trace) {
  const auto h = train(p, algorithm, o, 3, int64_t(trace.size()));
  for (size_t t = 0; t < trace.size(); ++t)
    for (size_t i = 0; i < trace[t].size(); ++i)
      EXPECT_NEAR(h[t + 1][i][0], trace[t][i], 1e-6) << algorithm << " t=" << t + 1 << " worker " << i;
}

TEST(Trace, AllReduce) {
  expect_trace("allreduce", {}, {.size = 1, .momentum = 0.9f, .decay = 0.1f},
               {{.2, .2, .2}, {.558, .558, .558}, {1.01882, 1.01882, 1.01882}});
}
TEST(Trace, Sgp) {
  expect_trace("sgp", {}, {.size = 1}, {{.2, .15, .25}, {.3075, .43, .4025}, {.5195, .481875, .624625}});
}
TEST(Trace, DPsgd) {
  expect_trace("d-psgd", {}, {.size = 1}, {{.1, .2, .3}, {.29, .38, .47}, {.451, .542, .633}});
}
TEST(Trace, LocalSgd) {
  expect_trace("local-sgd", options({{"tau", "2"}}), {.size = 1},
               {{.1, .2, .3}, {.38, .38, .38}, {.442, .542, .642}, {.6878, .6878, .6878}});
}

// ---- what a row promises of its own
// -----------------------------------------------------------------------------
TEST(AllReduce, WeighsByTheSamplesOfEachRank) {
  const Problem p{.size = 1, .uneven_batches = true};
  const auto h = train(p, "allreduce", {}, 3, 1);  // 1, 2, 3 samples that want 1, 2, 3
  for (const auto& x : h[1]) EXPECT_NEAR(x[0], 0.1 * (1 * 1 + 2 * 2 + 3 * 3) / 6, 1e-7);
}

TEST(DPsgd, RefusesGraphsThatAreNotSymmetric) {
  EXPECT_THROW(optim::make_strategy("d-psgd", options({{"topology", "exponential"}}), 8), BadOption);
  EXPECT_THROW(optim::make_strategy("d-psgd", options({{"peers", "1"}}), 3), BadOption);
  for (const char* fine : {"complete", "base", "random", "bipartite-linear"})
    EXPECT_NO_THROW(optim::make_strategy("d-psgd", options({{"topology", fine}}), 8)) << fine;
  for (int n = 1; n <= 9; ++n) EXPECT_NO_THROW(optim::make_strategy("d-psgd", {}, n)) << n;
}

TEST(LocalSgd, RefusesAPeriodOfZero) {
  EXPECT_THROW(optim::make_strategy("local-sgd", options({{"tau", "0"}}), 2), BadOption);
}

TEST(Gossip, ReadsPeersThatChangeByEpoch) {
  const auto o = options({{"peers", "1@0,2@3"}, {"steps-per-epoch", "4"}});
  const auto h = train({.zero_gradient = true, .start_spread = 1}, "sgp", o, 3, 13);
  EXPECT_GT(spread(h[12]), 1e-7);  // directed pairs only approach the mean of three,
  EXPECT_LT(spread(h[13]), 1e-5);  // two peers reach it at once
  for (const char* bad : {"x", "0", "1@1", "1@0,2@0", "1@0,2", "2@0,"})
    EXPECT_THROW(optim::make_strategy("sgp", options({{"peers", bad}, {"steps-per-epoch", "4"}}), 4),
                 BadOption)
        << bad;
  EXPECT_THROW(optim::make_strategy("sgp", options({{"peers", "1@0,2@3"}}), 4), BadOption);
}

TEST(Gossip, MixesBuffersWhenTold) {
  const Problem p{.zero_gradient = true, .pause = 5e-4};
  for (const char* policy : {"mix", "local"})
    for (const char* name : {"sgp", "d-psgd", "local-sgd", "osgp", "ad-psgd"}) {
      std::vector<float> last(4);
      const Case c{&optim::strategy_row(name), "", options({{"bn-policy", policy}, {"tau", "1"}})};
      begin_and_end(p, c, 4, 40, [&](Trainee& t, size_t r) { last[r] = t.buffers.data<float>()[1]; });
      for (int r = 0; r < 4; ++r)
        EXPECT_NEAR(last[size_t(r)], policy == std::string("mix") ? 1.5 : r, 1e-5) << name << ' ' << policy;
    }
  EXPECT_THROW(optim::make_strategy("sgp", options({{"bn-policy", "mixed"}}), 2), BadOption);
}

TEST(Consensus, IsTheMeanAndTheDistanceFromIt) {
  in_local_world(3, [](comm::Communicator& c) {
    const Tensor x = Tensor::of<float>({2}, {float(c.rank()), 5}), mean({2});
    optim::consensus(c, x, mean);
    EXPECT_EQ(values(mean), (std::vector<float>{1, 5}));
    EXPECT_EQ(x.data<float>()[0], float(c.rank()));
    EXPECT_NEAR(optim::consensus_distance(c, x, mean, 2), std::sqrt(2.0 / 3 / 2), 1e-6);
  });
  const Tensor x = Tensor::of<float>({1}, {3}), mean({1});
  comm::WorldOfOne alone;
  optim::consensus(alone, x, mean);
  EXPECT_EQ(mean.item(), 3);
  EXPECT_EQ(optim::consensus_distance(alone, x, mean, 1), 0);
}

}  // namespace
}  // namespace skein
