// Overlap SGP: its trace, its laws, what staleness allows, meetings, and resumes.
#include <atomic>
#include <fstream>

#include "tests/support/files.h"
#include "tests/support/peek.h"
#include "tests/support/sim_trainee.h"

namespace skein {
namespace {

using namespace trainee;

const Problem kHard{.momentum = 0.9f,
                    .decay = 0.01f,
                    .noise = 1,
                    .curvature_spread = 1,
                    .nesterov = true,
                    .start_spread = 0.25f};

std::vector<float> part(const Trainee& t, const std::string& name) {
  return Peek(*t.strategy).vectors.at(name);
}
double number(const Trainee& t, const std::string& name) { return Peek(*t.strategy).numbers.at(name); }

// ---- contracts section 6
// -----------------------------------------------------------------------------------
TEST(Trace, OverlapSgp) {
  const double z[3][3] = {{0, 0, 0}, {.1, .2, .3}, {.24, .43, .47}},
               held[3][3] = {{.1, .2, .3}, {.14, .28, .42}, {.196, .372, .488}},
               drained[3][3] = {{.1, .2, .3}, {.24, .43, .47}, {.431, .492, .703}};
  for (int64_t steps = 1; steps <= 3; ++steps)
    in_local_world(3, [&](comm::Communicator& c) {
      const int i = c.rank();
      Trainee t({.size = 1}, "osgp", {}, c);
      for (int64_t k = 0; k < steps; ++k) t.step(k);
      EXPECT_NEAR(t.x.item(), z[steps - 1][i], 1e-6) << "z, t=" << steps << " worker " << i;
      EXPECT_NEAR(part(t, "x")[0], held[steps - 1][i], 1e-6) << "X, t=" << steps << " worker " << i;
      EXPECT_EQ(number(t, "w"), 0.5);
      t.strategy->settle(t.worker);
      EXPECT_NEAR(t.x.item(), drained[steps - 1][i], 1e-6) << "drained, t=" << steps << " worker " << i;
    });
}

// ---- laws
// --------------------------------------------------------------------------------------------------
History in_lockstep(const Problem& p, const optim::Options& o, int n, int64_t steps) {
  History h(size_t(steps), std::vector<std::vector<float>>(static_cast<size_t>(n)));
  in_local_world(n, [&](comm::Communicator& c) {
    Trainee t(p, "osgp", o, c);
    for (int64_t k = 0; k < steps; ++k) {
      t.step(k);
      h[size_t(k)][size_t(c.rank())] = values(t.x);
      c.barrier();
    }
    t.strategy->settle(t.worker);
  });
  return h;
}

TEST(OverlapSgp, InLockstepIsTheSameForEveryStaleness) {
  for (int n : {1, 2, 3, 4, 7, 8, 17}) {
    const auto punctual = in_lockstep(kHard, {}, n, 8);
    for (const char* s : {"1", "2", "9"})
      EXPECT_EQ(in_lockstep(kHard, options({{"staleness", s}}), n, 8), punctual) << n << " s=" << s;
  }
}

// With what is on its way the sum of X changes by -eta sum g in every step, whatever is late or rounded off.
TEST(OverlapSgp, AStepChangesTheSumByTheGradientsAlone) {
  for (int n = 1; n <= 17; n += n < 6 ? 1 : 3)
    for (const auto& [staleness, codec] :
         {std::pair("0", "fp32"), {"2", "fp32"}, {"2", "int4"}, {"2", "topk:0.5"}}) {
      const std::string s = staleness, wire = codec;  // clang 14 captures no bindings
      const Weather slow{.seed = 3, .latency = 1, .jitter = 3, .duplication = 0.1, .overtaking = true};
      in_sim_world(n, slow, [&](comm::Communicator& c) {
        Trainee t({.size = 4, .noise = 1, .start_spread = 1}, "osgp",
                  options({{"staleness", s}, {"wire", wire}}), c);
        Tensor expected = t.x.clone(), now = t.x.clone();
        for (int64_t k = 0; k < 8; ++k) {
          spend(1);
          t.step(k);
          axpy(expected, -0.1f, t.g);
          if (k % 3 != 2 && k < 7) continue;
          t.strategy->settle(t.worker);
          copy(now, t.strategy->contribution(t.worker));
          const Tensor sum = expected.clone();
          c.all_reduce(sum).wait(), c.all_reduce(now).wait();
          for (int64_t i = 0; i < 4; ++i)
            EXPECT_NEAR(now.data<float>()[i], sum.data<float>()[i], 2e-5 * n)
                << n << " s=" << s << ' ' << wire;
        }
      });
    }
}

// ---- staleness
// -----------------------------------------------------------------------------------------------
TEST(OverlapSgp, WaitsAfterAsManyForwardsAsItsStaleness) {
  for (int64_t s : {0, 1, 3}) {
    std::atomic<int64_t> steps{0};
    in_local_world(2, [&](comm::Communicator& c) {
      Trainee t({.size = 1}, "osgp", options({{"staleness", std::to_string(s)}}), c);
      if (c.rank() == 1) {  // late: rank 0 can do s + 1 forwards without its gossip
        const auto end = comm::Clock::now() + std::chrono::seconds(10);
        while (steps < s + 1 && comm::Clock::now() < end) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        EXPECT_EQ(steps, s + 1);
      }
      for (int64_t k = 0; k < 8; ++k) {
        t.step(k);
        if (c.rank() == 0) ++steps;
      }
      t.strategy->settle(t.worker);
    });
  }
}

// A wait sleeps until its message is there: it costs as many events whether it is short or long.
TEST(OverlapSgp, AWaitCostsNoEventsWhileItLasts) {
  const auto events_of_steps = [](double late) {
    comm::sim::World world({.keeps_log = false});
    uint64_t events = 0;
    populate(world, 2,
             [&](comm::Communicator& c) {
               Trainee t({.size = 1}, "osgp", {}, c);
               for (int64_t k = 0; k < 4; ++k) {
                 if (c.rank() == 1) spend(late);
                 const uint64_t before = world.events();
                 t.step(k);
                 if (c.rank() == 0) events += world.events() - before;
               }
               t.strategy->settle(t.worker);
             },
             {.deadline = comm::kForever});
    world.run();
    return events;
  };
  EXPECT_GT(events_of_steps(1), 0u);
  EXPECT_EQ(events_of_steps(1), events_of_steps(1000));
}

TEST(OverlapSgp, AHangOfAllDoesNotCountAsWaiting) {
  comm::sim::World world({.silence = 200});
  populate(world, 2, [&](comm::Communicator& c) {
    Trainee t({.size = 1}, "osgp", {}, c);
    for (int64_t k = 0; k < 4; ++k) {
      if (c.rank() == 1) spend(4);
      t.step(k);
    }
    t.strategy->settle(t.worker);
    EXPECT_NEAR(world.now(), 113, 1);
  });
  for (const comm::sim::Id id : {0, 1}) {
    world.at(5, [&, id] { world.hang(id); });
    world.at(105, [&, id] { world.wake(id); });
  }
  world.run();
}

// While a message is late, w is 1/(p+1); it starts no other gossip.
TEST(OverlapSgp, LeavesALateGossipInTheAir) {
  in_sim_world(2, {.latency = 2.5}, [&](comm::Communicator& c) {
    Trainee t({.size = 1}, "osgp", options({{"staleness", "5"}}), c);
    for (int64_t k = 0; k < 9; ++k) {
      t.step(k);
      spend(1);
      EXPECT_EQ(number(t, "w"), 0.5);
    }
    EXPECT_EQ(number(t, "started"), 3);  // before the forwards 0, 3 and 6
    t.strategy->settle(t.worker);
  });
}

// ---- meetings
// -------------------------------------------------------------------------------------------------- Meets as
// a trainer does whose workers were stopped at different steps: until all are at one.
int64_t meet(Trainee& t, comm::Communicator& c, int64_t k) {
  for (;;) {
    t.strategy->settle(t.worker);
    int64_t furthest = k;
    bool together = true;
    std::vector<Tensor> all;
    const Tensor mine = Tensor::of<int64_t>({1}, {k}), steps({c.size()}, kI64);
    all = c.gather(mine, 0);
    for (size_t r = 0; r < all.size(); ++r) steps.data<int64_t>()[r] = all[r].data<int64_t>()[0];
    c.broadcast(steps, 0);
    for (int r = 0; r < c.size(); ++r) {
      together = together && steps.data<int64_t>()[r] == k;
      furthest = std::max(furthest, steps.data<int64_t>()[r]);
    }
    if (together) return k;
    for (; k < furthest; ++k) t.step(k);
  }
}

TEST(OverlapSgp, NobodyIsLeftWaitingWhereWorkersStopAtDifferentSteps) {
  for (const char* s : {"0", "1", "4"})
    for (const char* topology : {"exponential", "base", "ring"}) {
      std::vector<double> w(5);
      in_local_world(5, [&](comm::Communicator& c) {
        Trainee t(kHard, "osgp", options({{"staleness", s}, {"topology", topology}}), c);
        int64_t k = 0;
        for (; k < 6 + (*s == '0' ? c.rank() % 2 : 3 * c.rank()); ++k) t.step(k);
        meet(t, c, k);
        for (const auto& [name, value] : Peek(*t.strategy).numbers)
          if (name == "w" || name.ends_with(".weight")) w[size_t(c.rank())] += value;
      });
      double sum = 0;
      for (double v : w) sum += v;
      EXPECT_NEAR(sum, 5, 1e-12) << s << ' ' << topology;
    }
}

TEST(OverlapSgp, StoppedAtDifferentStepsWithoutStalenessChangesNothing) {
  const int n = 4;
  const auto whole = train(kHard, "osgp", {}, n, 12);
  std::vector<std::vector<float>> end(4);
  in_local_world(n, [&](comm::Communicator& c) {
    Trainee t(kHard, "osgp", {}, c);
    int64_t k = 0;
    for (; k < 6 + (c.rank() == 2 ? 0 : 1); ++k) t.step(k);
    for (k = meet(t, c, k); k < 12; ++k) t.step(k);
    t.strategy->settle(t.worker);
    end[size_t(c.rank())] = values(t.x);
  });
  EXPECT_EQ(end, whole.back());
}

// ---- record and replay
// ------------------------------------------------------------------------------------------
class OverlapSgpReplay : public ::testing::Test {
 protected:
  testing::ScratchDir folder_;
};

TEST_F(OverlapSgpReplay, RepeatsALateRunBitForBitFromAnyOfItsCheckpoints) {
  const int n = 5, steps = 24;
  using States = std::vector<optim::Snapshot>;
  std::map<int64_t, States> saved;
  const auto run = [&](const char* mode, int64_t from, bool stormy) {
    const auto o = options({{"staleness", "3"}, {mode, folder_ / "order"}, {"exact-every", "10"}});
    const Weather weather{
        .seed = 9, .latency = stormy ? 1.0 : 0.1, .jitter = stormy ? 5.0 : 0, .overtaking = true};
    History h(size_t(steps), std::vector<std::vector<float>>(static_cast<size_t>(n)));
    std::mutex mutex;
    in_sim_world(n, weather, [&](comm::Communicator& c) {
      Trainee t(kHard, "osgp", o, c);
      const size_t r = size_t(c.rank());
      const optim::Walk walk = [&](Archive& a) { t.visit(a); };
      if (from > 0) saved.at(from)[r].restore(walk), t.strategy->settle(t.worker);  // as before an evaluation
      for (int64_t k = from; k < steps;) {
        spend(1 + 0.3 * double(r));
        t.step(k++);
        if (k % 8 == 0) t.strategy->settle(t.worker);
        h[size_t(k - 1)][r] = values(t.x);
        const std::lock_guard lock(mutex);
        if (k % 8 == 0 && std::string(mode) == "record") {
          saved[k].resize(size_t(n));
          saved[k][r].take(walk);
        }
      }
    });
    return h;
  };
  const History recorded = run("record", 0, true);
  EXPECT_NE(recorded, run("prompt", 0, false)) << "nothing was late";
  const History again = run("replay", 0, false);
  EXPECT_EQ(again, recorded);
  for (int64_t from : {8, 16}) {
    const History rest = run("replay", from, false);
    for (size_t k = size_t(from); k < size_t(steps); ++k) EXPECT_EQ(rest[k], recorded[k]) << from << ' ' << k;
  }
}

TEST_F(OverlapSgpReplay, RefusesToMeetWhereTheRecordedRunDidNot) {
  for (const char* mode : {"record", "replay"})
    for (const char* row : {"osgp", "ad-psgd"})
      in_local_world(2, [&](comm::Communicator& c) {
        Trainee t({.size = 1}, row, options({{"staleness", "1"}, {mode, folder_ / row}}), c);
        for (int64_t k = 0; k < 3; ++k) t.step(k);
        if (mode == std::string("replay")) { EXPECT_THROW(t.strategy->settle(t.worker), Error) << row; }
        c.barrier();
        for (int64_t k = 3; k < 6; ++k) t.step(k);
        t.strategy->settle(t.worker);
      });
}

TEST(OverlapSgp, RefusesWhatItCannotDo) {
  EXPECT_THROW(optim::make_strategy("osgp", options({{"staleness", "-1"}}), 2), BadOption);
  EXPECT_THROW(optim::make_strategy("osgp", options({{"wire", "int8"}, {"bn-policy", "mix"}}), 2), BadOption);
}

}  // namespace
}  // namespace skein
