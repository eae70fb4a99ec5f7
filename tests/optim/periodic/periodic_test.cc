// Periodic averaging: when rounds end, what travels meanwhile, what is refused.
#include "optim/periodic/periodic.h"

#include <condition_variable>
#include <mutex>

#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

TEST(Periodic, RoundsHaveTheLengthsOfTheContract) {
  for (const char* name : {"local-sgd", "bmuf", "qsr"})
    EXPECT_EQ(meetings(name, "", 9), (Steps{4, 8})) << name;
  EXPECT_EQ(meetings("slowmo", "", 25), (Steps{12, 24}));
  EXPECT_EQ(meetings("diloco", "", 201), (Steps{100, 200}));
  EXPECT_EQ(meetings("post-local", "--switch-step 3 --tau 3", 9), (Steps{1, 2, 3, 6, 9}));
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

const char* const kTraveling[] = {"overlap-local-sgd --tau 3", "cocod --tau 3",
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
      const int64_t reach = line[0] == 's' ? 4 : 5;  // the steps that need no peer
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
  for (const std::string line : kTraveling)
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
