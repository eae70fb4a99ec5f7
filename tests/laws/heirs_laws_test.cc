// The laws that tie the newer algorithms to the older ones.
#include "tests/support/servers.h"
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

const Problem kHardAndTogether{
    .momentum = 0.9f, .decay = 0.01f, .noise = 1, .curvature_spread = 1, .nesterov = true};

void expect_close(const History& a, const History& b, double per_step) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k)
    for (size_t r = 0; r < a[k].size(); ++r)
      EXPECT_LT(largest_difference(a[k][r], b[k][r]), per_step * double(k + 1))
          << "step " << k << " rank " << r;
}

TEST(Law, EagerDiLoCoAloneIsDiLoCoExactly) {
  for (const char* nesterov : {"on", "off"}) {
    const auto o = options({{"tau", "3"}, {"outer-nesterov", nesterov}});
    EXPECT_EQ(train(kHardAndTogether, "eager-diloco", o, 1, 20), train(kHardAndTogether, "diloco", o, 1, 20))
        << nesterov;
  }
}

// All have the same gradients, so each one's own progress says what the others' is, a round earlier or not.
TEST(Law, EagerDiLoCoOfEqualsStaysTogether) {
  Problem p = kHardAndTogether;
  p.id = [](int) { return 0; };
  const auto h = train(p, "eager-diloco", options({{"tau", "2"}}), 4, 12);
  for (const auto& models : h)
    for (const auto& x : models) EXPECT_EQ(x, models[0]);
}

TEST(Law, PalsgdThatIsNeverPulledIsDiLoCoExactly) {
  for (int n : {1, 3, 4})
    EXPECT_EQ(train(kHardAndTogether, "palsgd", options({{"tau", "3"}, {"pull-probability", "0"}}), n, 20),
              train(kHardAndTogether, "diloco", options({{"tau", "3"}}), n, 20))
        << n;
}

TEST(Law, SpartaOfTheWholeModelIsLocalSgdWithoutRoundsExactly) {
  Problem p = kHardAndTogether;
  p.start_spread = 0.25f;
  for (int n : {1, 2, 5})
    EXPECT_EQ(train(p, "sparta", options({{"density", "1"}}), n, 15),
              train(p, "local-sgd", options({{"tau", "1"}}), n, 15))
        << n;
}

// All numbers travel, rounded to bf16, and what is rounded off follows later.
TEST(Law, SparseLoCoThatSendsAllIsDiLoCoWithoutMomentum) {
  const auto dense = options({{"tau", "3"}, {"outer-momentum", "0"}, {"outer-lr", "0.7"}});
  for (const char* mean : {"all", "senders"}) {
    const auto all = options({{"tau", "3"},
                              {"density", "1"},
                              {"sparse-mean", mean},
                              {"outer-lr", "0.7"},
                              {"residual-decay", "1"}});
    const auto a = train(kHardAndTogether, "sparseloco", all, 3, 20),
               b = train(kHardAndTogether, "diloco", dense, 3, 20);
    for (size_t k = 0; k < a.size(); ++k)
      EXPECT_LT(largest_difference(a[k][0], b[k][0]), 0.02) << mean << ' ' << k;  // bf16 has 8 bits
  }
}

// bf16 holds these numbers, so nothing is rounded off.
TEST(Law, SparseLoCoThatCutsNothingIsDiLoCoExactly) {
  const Problem p{.size = 8, .lr = 0.5f};
  EXPECT_EQ(train(p, "sparseloco", options({{"tau", "1"}, {"density", "1"}}), 2, 1),
            train(p, "diloco", options({{"tau", "1"}, {"outer-momentum", "0"}, {"outer-lr", "1"}}), 2, 1));
}

TEST(Law, NoLoCoOfTwoIsDiLoCoWithTheHeavyBall) {
  const auto a = train(kHardAndTogether, "noloco", options({{"tau", "3"}}), 2, 21);
  const auto b = train(kHardAndTogether, "diloco",
                       options({{"tau", "3"}, {"outer-momentum", "0.5"}, {"outer-nesterov", "off"}}), 2, 21);
  expect_close(a, b, 3e-6);
}

TEST(Law, QuasiGlobalMomentumOfZeroIsDPsgdExactly) {
  Problem p = kHardAndTogether;
  p.momentum = 0, p.nesterov = false, p.start_spread = 0.25f;
  for (int n = 1; n <= 5; ++n)
    EXPECT_EQ(train(p, "qg-dsgdm", options({{"qg-momentum", "0"}}), n, 15), train(p, "d-psgd", {}, n, 15))
        << n;
}

TEST(Law, TrackingOfEqualGradientsCorrectsNothing) {
  Problem p = kHardAndTogether;
  p.id = [](int) { return 0; };
  in_local_world(4, [&](comm::Communicator& c) {  // shares of a quarter are exact
    Trainee t(p, "momentum-tracking", options({{"topology", "complete"}}), c);
    for (int64_t k = 0; k < 12; ++k) {
      t.step(k);
      EXPECT_EQ(first_of(*t.strategy, "c"), 0) << k;
    }
  });
}

// Of linear gradients the mean of the models moves by the mean gradient, whatever the graph.
TEST(Law, D2MovesTheMeanAsAllReduceDoes) {
  Problem p = kHardAndTogether;
  for (const char* topology : {"complete", "ring"})
    for (const char* name : {"d2", "momentum-tracking"}) {
      const auto a = train(p, name, options({{"topology", topology}}), 4, 20),
                 b = train(p, "allreduce", {}, 4, 20);
      for (size_t k = 0; k < a.size(); ++k)
        for (size_t i = 0; i < size_t(p.size); ++i) {
          double mean = 0;
          for (const auto& x : a[k]) mean += x[i] / 4;
          EXPECT_NEAR(mean, b[k][0][i], 5e-6 * double(k + 1)) << name << ' ' << topology << ' ' << k;
        }
    }
}

TEST(Law, DppfThatPullsAllTheWayIsLocalSgd) {
  const auto a = train(kHardAndTogether, "dppf", options({{"tau", "2"}, {"alpha", "1"}, {"push", "0"}}), 3,
                       20),
             b = train(kHardAndTogether, "local-sgd", options({{"tau", "2"}}), 3, 20);
  expect_close(a, b, 3e-6);
}

TEST(Law, ADelayThatNoneReachesIsDownpourExactly) {
  const int order[] = {0, 1, 1, 2, 0, 2, 1, 0, 0};
  Driven a(kHardAndTogether, "downpour", options({{"max-delay", "100"}}), 3),
      b(kHardAndTogether, "downpour", {}, 3);
  for (int w : order) {
    a.step_of(w), b.step_of(w);
    EXPECT_EQ(values(a[w].x), values(b[w].x));
  }
}

TEST(Law, AloneWithADelayOfOneIsSgdExactly) {
  EXPECT_EQ(train(kHardAndTogether, "downpour", options({{"max-delay", "1"}}), 1, 20),
            train(kHardAndTogether, "downpour", {}, 1, 20));
}

TEST(Law, DelayedNesterovWithoutMomentumIsDownpourExactly) {
  const int order[] = {0, 1, 1, 2, 0, 2, 1, 0, 0};
  const auto rule = options({{"server-rule", "delayed-nesterov"},
                             {"server-lr", "1"},
                             {"server-momentum", "0"},
                             {"server-buffer", "1"}});
  Driven a(kHardAndTogether, "downpour", rule, 3), b(kHardAndTogether, "downpour", {}, 3);
  for (int w : order) {
    a.step_of(w), b.step_of(w);
    EXPECT_EQ(values(a[w].x), values(b[w].x));
  }
}

TEST(Law, DelayedNesterovAloneIsDiLoCo) {
  const auto rule = options({{"tau", "3"}, {"server-rule", "delayed-nesterov"}});
  expect_close(train(kHardAndTogether, "downpour", rule, 1, 21),
               train(kHardAndTogether, "diloco", options({{"tau", "3"}}), 1, 21), 3e-6);
}

// Worker 1 took its gradient before both steps of worker 0.
TEST(MaxDelay, DropsWhatIsTooLate) {
  Driven d({.size = 1}, "downpour", options({{"max-delay", "2"}}), 2);
  EXPECT_NEAR(d.step(0), .1, 1e-6);
  EXPECT_NEAR(d.step(0), .19, 1e-6);
  EXPECT_NEAR(d.step(1), .19, 1e-6);              // dropped, and it goes on from the center
  EXPECT_NEAR(d.step(1), .19 + .1 * 1.81, 1e-6);  // g = x - 2 at x = .19
  EXPECT_NEAR(d.step(0), .371 + .1 * .81, 1e-6);  // one commit late, not two
}

}  // namespace
}  // namespace skein
