// Periodic averaging: the traces to the digit, when rounds end, what travels meanwhile, what is refused.
#include <cmath>
#include <condition_variable>
#include <mutex>

#include "tests/support/trainee.h"

namespace skein {
namespace {

using namespace trainee;

const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-6; };

// The first element of a strategy's vector of this name.
float first_of(optim::Strategy& s, const std::string& wanted) {
  struct Reader final : Archive {
    std::string wanted;
    float found = NAN;
    bool loading() const override { return false; }
    void operator()(const std::string& name, Tensor& t) override {
      if (name == wanted) found = t.data<float>()[0];
    }
    void operator()(const std::string&, int64_t&) override {}
    void operator()(const std::string&, double&) override {}
    void operator()(const std::string&, std::string&) override {}
  } reader;
  reader.wanted = wanted;
  s.visit(reader);
  return reader.found;
}

// ---- contracts section 6: losses 0.5 (x - (i+1))^2 of three workers, start 0, rate 0.1 ------------------
struct Row {
  int t;
  std::vector<double> x;  // of the three workers, or of all
  std::string name = "";  // of a vector of the strategy, and its value
  double value = 0;
};

void expect_trace(const std::string& algorithm, const std::string& flags, const std::vector<Row>& trace) {
  in_local_world(3, [&](comm::Communicator& c) {
    Trainee t({.size = 1}, algorithm, flags_of(flags), c);
    int64_t k = 0;
    for (const Row& row : trace) {
      for (; k < row.t; ++k) t.step(k);
      const double x = row.x[row.x.size() == 1 ? 0 : size_t(c.rank())];
      EXPECT_PRED2(near, t.x.item(), x) << algorithm << " t=" << row.t << " worker " << c.rank();
      if (row.name.empty()) continue;
      EXPECT_NEAR(first_of(*t.strategy, row.name), row.value, 2e-6) << algorithm << " t=" << row.t;
    }
  });
}

TEST(PeriodicTrace, PostLocal) {
  expect_trace("post-local", "--tau 2 --switch-step 2",
               {{1, {.2}}, {2, {.38}}, {3, {.442, .542, .642}}, {4, {.6878}}});
}
TEST(PeriodicTrace, SlowMo) {
  expect_trace("slowmo", "--tau 2 --beta 0.5 --alpha 1", {{2, {.38}, "m", -3.8}, {4, {.8778}, "m", -4.978}});
}
TEST(PeriodicTrace, Bmuf) {
  expect_trace("bmuf", "--tau 2 --beta 0.5", {{2, {.38}, "D", .38}, {4, {.8778}, "D", .4978}});
  expect_trace("bmuf", "--tau 2 --beta 0.5 --outer-nesterov on", {{2, {.57}, "D", .38}});
}
TEST(PeriodicTrace, OverlapLocalSgd) {
  expect_trace("overlap-local-sgd", "--tau 2",
               {{1, {.1, .2, .3}},
                {2, {.076, .152, .228}, "z", 0},
                {3, {.1684, .3368, .5052}},
                {4, {.191824, .292448, .393072}, "z", .152},
                {5, {.2726416, .4632032, .6537648}},
                {6, {.377459776, .486061952, .594664128}, "z", .398848}});
}
TEST(PeriodicTrace, CocodSgd) {
  expect_trace("cocod", "--tau 2",
               {{1, {.1, .2, .3}},
                {2, {.19, .38, .57}},
                {3, {.271, .542, .813}},
                {4, {.5339, .6878, .8417}},
                {5, {.58051, .81902, 1.05753}},
                {6, {.776359, .937118, 1.097877}}});
}
TEST(PeriodicTrace, Easgd) {
  for (const char* name : {"easgd", "eamsgd"})
    expect_trace(name, "--tau 2 --alpha 0.2",
                 {{2, {.152, .304, .456}, "z", .228}, {4, {.296096, .546592, .797088}, "z", .466944}});
}
TEST(PeriodicTrace, DiLoCo) {
  for (const char* name : {"diloco --fragments 1", "streaming-diloco --fragments 1"}) {
    const std::string line = name, algorithm = line.substr(0, line.find(' '));
    expect_trace(algorithm, "--tau 2 " + line.substr(algorithm.size()),
                 {{2, {.5054}, "m", -.38}, {4, {1.09854542}, "m", -.625974}});
  }
  expect_trace("diloco", "--tau 2 --outer-nesterov off", {{2, {.266}, "m", -.38}});
}
// Worked by hand: the mean of the models after step 2 acts after step 3.
TEST(PeriodicTrace, StreamingDiLoCoWithADelay) {
  const std::string flags = "--tau 2 --fragments 1 --delay 1";
  expect_trace("streaming-diloco", flags,
               {{2, {.19, .38, .57}, "z", 0},
                {3, {.5054}, "z", .5054},
                {4, {.55486, .65486, .75486}},
                {5, {.9196418}, "m", -.49146}});
  expect_trace("streaming-diloco", flags + " --mix 0.25",
               {{3, {.25 * .271 + .75 * .5054, .25 * .542 + .75 * .5054, .25 * .813 + .75 * .5054}}});
}

// ---- when rounds end ------------------------------------------------------------------------------------
// The steps after which all workers' elements [from, to) are equal.
std::vector<int64_t> meetings(const std::string& algorithm, const std::string& flags, int64_t steps,
                              const std::function<double(int64_t k)>& rate = {}, size_t from = 0,
                              size_t to = 1) {
  History h(size_t(steps), std::vector<std::vector<float>>(2));
  in_local_world(2, [&](comm::Communicator& c) {
    Trainee t({.size = 4, .lr = 1e-3f}, algorithm, flags_of(flags), c);
    for (int64_t k = 0; k < steps; ++k) {
      if (rate) t.worker.lr = rate(k);
      t.step(k);
      h[size_t(k)][size_t(c.rank())] = values(t.x);
    }
  });
  std::vector<int64_t> all;
  for (int64_t t = 1; t <= steps; ++t) {
    const auto& x = h[size_t(t - 1)];
    if (std::equal(x[0].begin() + long(from), x[0].begin() + long(to), x[1].begin() + long(from)))
      all.push_back(t);
  }
  return all;
}
using Steps = std::vector<int64_t>;

TEST(Periodic, RoundsHaveTheLengthsOfTheContract) {
  for (const char* name : {"local-sgd", "bmuf", "qsr"})
    EXPECT_EQ(meetings(name, "", 9), (Steps{4, 8})) << name;
  EXPECT_EQ(meetings("slowmo", "", 25), (Steps{12, 24}));
  EXPECT_EQ(meetings("diloco", "", 201), (Steps{100, 200}));
  EXPECT_EQ(meetings("post-local", "--switch-step 3 --tau 3", 9), (Steps{1, 2, 3, 6, 9}));
}

TEST(Qsr, RoundsGrowAsTheRateFalls) {
  const auto at = [](double rate) { return [rate](int64_t) { return rate; }; };
  EXPECT_EQ(meetings("qsr", "--tau 1 --qsr-c 0.2", 9, at(0.1)), (Steps{4, 8}));  // exactly 4
  EXPECT_EQ(meetings("qsr", "--tau 1 --qsr-c 0.2", 9, at(0.101)), (Steps{3, 6, 9}));
  EXPECT_EQ(meetings("qsr", "--tau 3 --qsr-c 0.2", 9, at(0.2)), (Steps{3, 6, 9}));
  EXPECT_EQ(meetings("qsr", "--tau 1 --qsr-c 0.2 --tau-max 5", 11, at(1e-9)), (Steps{5, 10}));
  EXPECT_EQ(meetings("qsr", "--tau 1 --qsr-c 0.2 --steps-per-epoch 3", 7, at(1e-9)), (Steps{3, 6}));
  // A rate of 0 makes the longest round. It is that of the first step only, after which workers are still equal.
  const auto from_zero = [](int64_t k) { return k % 5 == 0 ? 0 : 1e-3; };
  EXPECT_EQ(meetings("qsr", "--tau 1 --qsr-c 0.2 --tau-max 5", 11, from_zero), (Steps{1, 5, 6, 10, 11}));
  // The rate of a round's first step counts: 2 steps, then 8.
  const auto falling = [](int64_t k) { return k == 0 ? 0.15 : k == 2 ? 0.07 : 0.3; };
  EXPECT_EQ(meetings("qsr", "--tau 2 --qsr-c 0.2", 11, falling), (Steps{2, 10}));
}

// (c / eta)^2 would be 16 steps in the first half of the warm-up and 4 at the full rate.
TEST(Qsr, KeepsTheBasePeriodThroughTheWarmUpAndMeetsAtTheEnd) {
  const auto rising = [](int64_t k) { return k < 4 ? 0.05 : 0.1; };
  const std::string flags = "--tau 2 --qsr-c 0.2 --warmup-steps 8";
  EXPECT_EQ(meetings("qsr", flags, 16, rising), (Steps{2, 4, 6, 8, 12, 16}));
  EXPECT_EQ(meetings("qsr", flags + " --total-steps 15", 15, rising), (Steps{2, 4, 6, 8, 12, 15}));
  // A round that begins in the warm-up may end behind it; one that was cut leaves a resumed run in order.
  EXPECT_EQ(meetings("qsr", "--tau 3 --qsr-c 0.2 --warmup-steps 4 --total-steps 8", 14, rising),
            (Steps{3, 6, 8, 12}));
}

TEST(StreamingDiLoCo, SynchronizesOnePieceAtATime) {
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 2", 9, {}, 0, 2), (Steps{4, 8}));
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 2", 9, {}, 2, 4), (Steps{2, 6}));
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 2 --delay 3", 9, {}, 0, 2), (Steps{7}));
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 2 --delay 3", 9, {}, 2, 4), (Steps{5, 9}));
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 9 --tau 2", 5, {}, 0, 1), (Steps{2, 4}));
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 9 --tau 2", 5, {}, 3, 4), (Steps{1, 3, 5}));
  EXPECT_TRUE(meetings("streaming-diloco", "--mix 1", 9, {}, 0, 4).empty());
}

// ---- what a row promises of its own ---------------------------------------------------------------------
TEST(SlowMo, OnlyAveragesWhereTheRateIsZero) {
  in_local_world(3, [](comm::Communicator& c) {
    Trainee t({.size = 1}, "slowmo", flags_of("--tau 2"), c);
    t.step(0), t.step(1);
    const float m = first_of(*t.strategy, "m"), x = t.x.item();
    t.step(2);
    t.worker.lr = 0;
    t.step(3);
    EXPECT_EQ(first_of(*t.strategy, "m"), m);
    EXPECT_NEAR(t.x.item(), x + 0.1 * (2 - x), 1e-6);
    EXPECT_EQ(first_of(*t.strategy, "z"), t.x.item());
  });
}

TEST(Periodic, ResetInnerForgetsMomentumAtASynchronization) {
  for (const char* flags : {"slowmo", "diloco", "streaming-diloco"})
    for (const char* reset : {"on", "off"})
      in_local_world(2, [&](comm::Communicator& c) {
        Trainee t({.momentum = 0.9f}, flags, flags_of(text("--tau 2 --reset-inner ", reset)), c);
        for (int64_t k = 0; k < 3; ++k) {
          t.step(k);
          Tensor v;
          struct Reader final : Archive {
            Tensor* v = nullptr;
            bool loading() const override { return false; }
            void operator()(const std::string&, Tensor& x) override { *v = x; }
            void operator()(const std::string&, int64_t&) override {}
            void operator()(const std::string&, double&) override {}
            void operator()(const std::string&, std::string&) override {}
          } reader;
          reader.v = &v;
          t.rule->visit(reader);
          EXPECT_EQ(norm(v) == 0, k == 1 && reset == std::string("on")) << flags << k;
        }
      });
}

TEST(Easgd, EvaluatesItsCenterAndDefaultsToNineTenthsOverN) {
  in_local_world(3, [](comm::Communicator& c) {
    Trainee t({.size = 1}, "easgd", flags_of("--tau 2"), c);
    t.step(0), t.step(1);
    EXPECT_PRED2(near, t.x.item(), 0.19 * (c.rank() + 1) * 0.7);
    Tensor y({1});
    t.strategy->write_model(t.worker, y);
    EXPECT_PRED2(near, y.item(), 0.9 * 0.38);
  });
}

TEST(Periodic, MixesBuffersWhenTold) {
  const Problem p{.zero_gradient = true};
  for (const char* policy : {"mix", "local", "recompute"})
    for (const char* name : {"post-local", "qsr", "slowmo", "bmuf", "overlap-local-sgd", "cocod", "easgd",
                             "diloco", "streaming-diloco", "streaming-diloco --delay 1"}) {
      const std::string line = name, algorithm = line.substr(0, line.find(' '));
      std::vector<float> last(4);
      in_local_world(4, [&](comm::Communicator& c) {
        Trainee t(p, algorithm, flags_of(text("--tau 2 --bn-policy ", policy, line.substr(algorithm.size()))),
                  c);
        for (int64_t k = 0; k < 100; ++k) t.step(k);
        last[size_t(c.rank())] = t.buffers.data<float>()[1];
      });
      for (int r = 0; r < 4; ++r)
        EXPECT_NEAR(last[size_t(r)], policy == std::string("mix") ? 1.5 : r, 1e-4) << name << ' ' << policy;
    }
}

TEST(Periodic, RefusesWithFlagValueAndWhatIsAllowed) {
  const std::vector<std::string> cases[] = {
      {"slowmo", "--tau 0", "--tau 0", "1 or more"},
      {"slowmo", "--beta 1.5", "--beta 1.5", "from 0 to 1"},
      {"slowmo", "--alpha -1", "--alpha -1", "0 or more"},
      {"bmuf", "--zeta x", "--zeta x", "a number"},
      {"overlap-local-sgd", "--alpha 1.1", "--alpha 1.1", "from 0 to 1"},
      {"easgd", "--alpha 0.5", "--alpha 0.5", "from 0 to 0.4"},  // four workers
      {"eamsgd", "--nesterov false", "--nesterov false", "--nesterov true"},
      {"diloco", "--outer-momentum 2", "--outer-momentum 2", "from 0 to 1"},
      {"streaming-diloco", "--fragments 0", "--fragments 0", "1 or more"},
      {"streaming-diloco", "--delay 4", "--delay 4", "from 0 to 3"},
      {"streaming-diloco", "--mix 2", "--mix 2", "from 0 to 1"},
      {"qsr", "--tau-max 3", "--tau-max 3", "which is 4"},
      {"qsr", "--qsr-c -1", "--qsr-c -1", "0 or more"},
      {"post-local", "--switch-step -1", "--switch-step -1", "0 or more"},
      {"allreduce", "--hierarchy rack", "--hierarchy rack", "none, host"},
      {"allreduce", "--hierarchy 0", "--hierarchy 0", "1 or more"},
      {"cocod", "--bn-policy mixed", "--bn-policy mixed", "local, mix"}};
  for (const auto& c : cases) try {
      optim::make_strategy(c[0], flags_of(c[1]), 4);
      ADD_FAILURE() << c[0] << ' ' << c[1] << " was taken";
    } catch (const BadOption& e) {
      for (size_t i : {2, 3}) EXPECT_NE(std::string(e.what()).find(c[i]), std::string::npos) << e.what();
    }
}

// ---- what travels while the next steps compute ----------------------------------------------------------
const char* const kTravelling[] = {"overlap-local-sgd --tau 3", "cocod --tau 3",
                                   "streaming-diloco --tau 3 --fragments 2 --delay 2"};

// Worker 1 does not take step 4 until worker 0 has finished step 5 and looked at its state.
TEST(Background, NeitherStepsNorVisitsWaitForAMeanUntilItsRoundIsOver) {
  for (const std::string line :
       {"overlap-local-sgd --tau 3", "cocod --tau 3", "streaming-diloco --tau 3 --fragments 1 --delay 2"}) {
    std::mutex mutex;
    std::condition_variable changed;
    bool passed = false;
    in_local_world(2, [&](comm::Communicator& c) {
      Trainee t({.noise = 1}, line.substr(0, line.find(' ')), flags_of(line.substr(line.find(' '))), c);
      optim::Snapshot state;
      for (int64_t k = 0; k < 3; ++k) t.step(k);
      if (c.rank() == 1) {
        std::unique_lock lock(mutex);
        EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return passed; })) << line;
      }
      const int64_t reach = line[0] == 's' ? 4 : 5;  // the steps that need nobody
      for (int64_t k = 3; k < reach; ++k) t.step(k), state.take([&](Archive& a) { t.visit(a); });
      if (c.rank() == 0) {
        const std::lock_guard lock(mutex);
        passed = true;
        changed.notify_all();
      }
      for (int64_t k = reach; k < 9; ++k) t.step(k);
    });
  }
}

// As survivors do that end at a common step: back to where another mean was under way, and on from there.
TEST(Background, AStepBackDropsOneFlightAndTakesUpAnother) {
  for (const std::string line : kTravelling)
    for (int64_t back = 0; back < 8; ++back) {
      const auto o = flags_of(line.substr(line.find(' ')));
      const std::string algorithm = line.substr(0, line.find(' '));
      const Problem p{.momentum = 0.9f, .noise = 1};
      const auto straight = train(p, algorithm, o, 3, 11);
      in_local_world(3, [&](comm::Communicator& c) {
        Trainee t(p, algorithm, o, c);
        const auto walk = [&](Archive& a) { t.visit(a); };
        optim::Snapshot then, now;
        for (int64_t k = 0; k < 8; ++k) {
          if (k == back) then.take(walk);
          t.step(k);
        }
        then.restore(walk);
        now.take(walk);
        EXPECT_EQ(then, now);
        for (int64_t k = back; k < 11; ++k) t.step(k);
        EXPECT_EQ(values(t.x), straight[11][size_t(c.rank())]) << line << " back to " << back;
        t.strategy->finish(t.worker);
      });
    }
}

}  // namespace
}  // namespace skein
