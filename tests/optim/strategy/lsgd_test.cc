// Leader SGD: its traces, its laws, the landscape it was made for, and workers of different speeds.
#include <cmath>

#include "comm/communicator/words.h"
#include "optim/leaders/leaders.h"
#include "optim/leaders/lease_servers.h"
#include "tests/optim/strategy/climber.h"
#include "tests/support/files.h"

namespace skein {
namespace {

using namespace trainee;

const float kStarts[4][2] = {{-6, -4}, {-15, -18}, {20, 11}, {17, 8}};
constexpr double kGlobalMinimum = -0.2172336282, kSecondMinimum = -0.0913252028;

double landscape(const float* x, float* g) {
  const double r = std::hypot(x[0], x[1]), a = M_PI * r;
  const double slope = (a * std::cos(a) - std::sin(a)) / (a * r);  // df/dr
  for (int i = 0; i < 2; ++i) g[i] = float(slope * x[i] / r);
  return std::sin(a) / a;
}

std::vector<double> climb(double lr, double c, const optim::Options& more) {
  optim::Options o = more;
  o.set("c-global", std::to_string(c)), o.set("c-local", std::to_string(c));
  std::vector<double> reached(4);
  in_local_world(4, [&](comm::Communicator& comm) {
    const auto& at = kStarts[comm.rank()];
    Climber w(comm, o, {at[0], at[1]}, float(lr), landscape);
    for (int64_t k = 0; k < 300; ++k) w.step(k);
    std::vector<float> g(2);
    reached[size_t(comm.rank())] = landscape(w.x.data<float>(), g.data());
  });
  return reached;
}

TEST(Lsgd, ReachesTheGlobalMinimumOfTheLandscape) {
  const auto each_step = options({{"tau-local", "1"}, {"tau-global", "1"}});
  const auto two_groups = options({{"tau-local", "1"}, {"tau-global", "4"}, {"groups", "2"}});
  for (const auto& [lr, c] : {std::pair(.05, .05), std::pair(.1, .2)})
    for (double f : climb(lr, c, each_step)) EXPECT_NEAR(f, kGlobalMinimum, 1e-4) << lr << ' ' << c;
  for (double f : climb(.1, .1, two_groups)) EXPECT_NEAR(f, kGlobalMinimum, 1e-4);
}

// Elastic averaging from the same starts with the same pulls, as the papers compare them.
TEST(Lsgd, WhereElasticAveragingSticksAtTheSecondMinimum) {
  for (double lr : {.05, .1})
    for (double alpha : {.05, .1, .2}) {
      float x[4][2], z[2] = {0, 0}, g[2];
      for (int w = 0; w < 4; ++w)
        for (int i = 0; i < 2; ++i) x[w][i] = kStarts[w][i], z[i] += kStarts[w][i] / 4;
      for (int k = 0; k < 20000; ++k) {
        float sum[2] = {0, 0};
        for (auto& at : x) {
          landscape(at, g);
          for (int i = 0; i < 2; ++i) {
            const float off = at[i] - z[i];
            at[i] -= float(lr) * g[i] + float(alpha) * off;
            sum[i] += float(alpha) * off;
          }
        }
        for (int i = 0; i < 2; ++i) z[i] += sum[i];
      }
      EXPECT_NEAR(landscape(z, g), kSecondMinimum, 2e-3) << lr << ' ' << alpha;
    }
}

void expect_leaders_trace(const optim::Options& o, const std::vector<std::vector<double>>& trace) {
  in_local_world(4, [&](comm::Communicator& comm) {
    const int r = comm.rank();
    Climber w(comm, o, {0}, 0.1f, [r](const float* x, float* g) {
      const double off = x[0] - float(4 - r);
      g[0] = float(off);
      return 0.5 * off * off;
    });
    for (size_t t = 0; t < trace.size(); ++t) {
      w.step(int64_t(t));
      EXPECT_NEAR(w.x.item(), trace[t][size_t(r)], 1e-6) << "t=" << t + 1 << " worker " << r;
    }
  });
}

// Steps to .4 .3 .2 .1; the leaders, 1 and 3, pull by a half. Then steps from there; and worker 3 leads all.
TEST(LsgdTrace, TwoGroupsOfTwo) {
  expect_leaders_trace(options({{"groups", "2"},
                                {"tau-local", "1"},
                                {"tau-global", "2"},
                                {"c-local", "0.5"},
                                {"c-global", "0.5"}}),
                       {{.35, .3, .15, .1}, {.41625, .38, .22625, .19}});
}
// p2/tau_g = 0.2 first, p1/tau_l = 0.4 then: after the first step 0.48 x.
TEST(LsgdTrace, ProximalPulls) {
  expect_leaders_trace(options({{"groups", "2"},
                                {"tau-local", "1"},
                                {"tau-global", "2"},
                                {"c-local", "0.5"},
                                {"c-global", "0.5"},
                                {"prox-local", "0.4"},
                                {"prox-global", "0.4"}}),
                       {{.168, .144, .072, .048}, {.190464, .175872, .102528, .087936}});
}
// One group: only the global pull acts, every tau-global steps, and c-local is not used.
TEST(LsgdTrace, OneGroup) {
  expect_leaders_trace(options({{"groups", "1"},
                                {"tau-local", "1"},
                                {"tau-global", "2"},
                                {"c-local", "0.9"},
                                {"c-global", "0.5"}}),
                       {{.4, .3, .2, .1}, {.475, .38, .285, .19}});
}
// Likewise with equal periods.
TEST(LsgdTrace, EqualPeriods) {
  expect_leaders_trace(options({{"groups", "2"},
                                {"tau-local", "2"},
                                {"tau-global", "2"},
                                {"c-local", "0.9"},
                                {"c-global", "0.5"}}),
                       {{.4, .3, .2, .1}, {.475, .38, .285, .19}});
}

TEST(LsgdLaw, OneGroupOfEqualLossesIsAPullToTheLowestRankExactly) {
  for (int n : {1, 2, 3, 8, 17}) {
    const auto gradient = [](int r, int64_t k, int64_t i) { return std::sin(float(7 * r + 3 * k + i)); };
    std::vector<std::vector<float>> reached(size_t(n), std::vector<float>(5));
    in_local_world(n, [&](comm::Communicator& comm) {
      const int r = comm.rank();
      int64_t k = 0;
      Climber w(comm, options({{"groups", "1"}, {"tau-global", "4"}, {"c-global", "0.3"}}),
                std::vector<float>(5, float(r)), 0.1f, [&](const float*, float* g) {
                  for (int64_t i = 0; i < 5; ++i) g[i] = gradient(r, k, i);
                  return 1.0;
                });
      for (; k < 8; ++k) w.step(k);
      reached[size_t(r)] = values(w.x);
    });
    std::vector<Tensor> x;
    for (int r = 0; r < n; ++r) x.push_back(Tensor::of<float>({5}, std::vector<float>(5, float(r))));
    for (int64_t k = 0; k < 8; ++k) {
      for (int r = 0; r < n; ++r) {
        Tensor g({5});
        for (int64_t i = 0; i < 5; ++i) g.data<float>()[i] = gradient(r, k, i);
        optim::sgd(x[size_t(r)], {})->step(x[size_t(r)], g, x[size_t(r)], 0.1);
      }
      if ((k + 1) % 4 == 0)
        for (int r = 1; r < n; ++r) lerp(x[size_t(r)], x[0], 0.3);
    }
    for (int r = 0; r < n; ++r) EXPECT_EQ(reached[size_t(r)], values(x[size_t(r)])) << n << ' ' << r;
  }
}

TEST(Lsgd, NotANumberLeadsNobodyAndThatIsSaid) {
  for (const char* groups : {"1", "2"}) {
    ::testing::internal::CaptureStderr();
    in_local_world(4, [&](comm::Communicator& comm) {
      const int r = comm.rank();
      Climber w(comm, options({{"groups", groups}, {"tau-local", "1"}, {"tau-global", "2"}}), {float(r)},
                0.1f, [](const float*, float* g) { return g[0] = 0, NAN; });
      for (int64_t k = 0; k < 2; ++k) w.step(k);
      EXPECT_EQ(w.x.item(), float(r));
    });
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("without a leader"), std::string::npos) << groups;
  }
}

TEST(Lsgd, APoisonedWorkerDoesNotLead) {
  in_local_world(3, [](comm::Communicator& comm) {
    const int r = comm.rank();
    Climber w(comm, options({{"tau-local", "1"}, {"tau-global", "1"}, {"c-global", "0.5"}}), {float(r)}, 0.1f,
              [r](const float*, float* g) { return g[0] = 0, r == 0 ? NAN : double(r); });
    w.step(0);
    EXPECT_EQ(w.x.item(), r == 0 ? 0.5f : r == 1 ? 1.f : 1.5f);  // all to worker 1
  });
}

// The first workers are slow; all meet every five steps.
std::vector<optim::Snapshot> race(int n, const optim::Options& o, int64_t from, int64_t to, bool sleeps,
                                  const std::vector<optim::Snapshot>& states = {}) {
  const Problem p{.momentum = 0.9f, .decay = 0.01f, .noise = 1, .start_spread = 0.5f};
  std::vector<optim::Snapshot> reached(static_cast<size_t>(n));
  in_local_world(n, [&](comm::Communicator& comm) {
    Trainee t(p, "lsgd", o, comm);
    const auto walk = [&](Archive& a) { t.visit(a); };
    if (!states.empty()) {
      optim::Snapshot state = states[size_t(comm.rank())];
      state.restore(walk);
    }
    for (int64_t k = from; k < to; ++k) {
      if (sleeps) std::this_thread::sleep_for(std::chrono::microseconds(comm.rank() < 2 ? 2000 : 100));
      t.step(k);
      if ((k + 1) % 5 == 0) t.strategy->settle(t.worker);
    }
    reached[size_t(comm.rank())].take(walk);
  });
  return reached;
}

TEST(Lsgd, ReplaysARecordingBitForBitAlsoAcrossAResume) {
  for (const char* groups : {"1", "2", "5"}) {
    testing::ScratchDir folder;
    auto record = options({{"groups", groups},
                           {"tau-local", "2"},
                           {"tau-global", "4"},
                           {"prox-local", "0.1"},
                           {"prox-global", "0.1"}});
    auto replay = record;
    record.set("record", folder / "order"), replay.set("replay", folder / "order");
    const auto whole = race(5, record, 0, 20, true);
    EXPECT_EQ(race(5, replay, 0, 20, false), whole) << groups;
    for (int64_t cut : {5, 10, 15})
      EXPECT_EQ(race(5, replay, cut, 20, false, race(5, replay, 0, cut, false)), whole)
          << groups << " cut at " << cut;
  }
}

// With the global server inline, or dedicated: a fifth rank that only serves. x of all four
// after each meeting.
std::vector<std::vector<float>> served(optim::Options o, bool dedicated, int64_t from, int64_t to,
                                       std::vector<optim::Snapshot>& states) {
  o.set("servers", dedicated ? "dedicated" : "inline");
  std::vector<std::vector<float>> met(4);
  const bool resume = !states.empty();
  states.resize(4);
  auto world = comm::local_world(4 + dedicated);
  comm::on_threads(4 + dedicated, [&](int r) {
    {
      comm::Communicator all(*world[size_t(r)], {.deadline = 20});
      optim::Served kept;
      if (r == 4) return optim::with_server(*optim::make_strategy("lsgd", o, 4)).serve(all, kept);
      const auto workers = all.group({0, 1, 2, 3});
      int64_t k = from;
      Climber w(
          *workers, o, {float(r)}, 0.1f,
          [&](const float* x, float* g) {
            g[0] = x[0] - float(r) - std::sin(float(k));
            return 0.5 * double(g[0]) * g[0];
          },
          dedicated ? all : *workers);
      const auto walk = [&](Archive& a) { a("x", w.x), w.strategy->visit(a); };
      if (resume) states[size_t(r)].restore(walk);
      for (; k < to; ++k) {
        std::this_thread::sleep_for(std::chrono::microseconds(300 * r));
        w.strategy->iterate(w.worker, k);
        if ((k + 1) % 10 != 0) continue;
        w.strategy->settle(w.worker);
        met[size_t(r)].push_back(w.x.item());
      }
      states[size_t(r)].take(walk);
    }
    world[size_t(r)].reset();  // says goodbye: the server ends when all have
  });
  return met;
}

TEST(Lsgd, ADedicatedServerIsAsGoodAsOneInline) {
  testing::ScratchDir folder;
  auto record = options({{"groups", "2"}, {"tau-local", "2"}, {"tau-global", "4"}}), replay = record;
  record.set("record", folder / "order"), replay.set("replay", folder / "order");
  std::vector<optim::Snapshot> whole, again, parts;
  const auto met = served(record, true, 0, 40, whole);
  EXPECT_EQ(served(replay, false, 0, 40, again), met);
  EXPECT_EQ(again, whole);  // what a checkpoint holds does not say where the server is
  served(replay, true, 0, 20, parts);
  served(replay, true, 20, 40, parts);
  EXPECT_EQ(parts, whole);
}

TEST(Lsgd, TheModelIsTheMeanOfAllWorkersAndTheAnchorsStay) {
  in_local_world(4, [&](comm::Communicator& comm) {
    Trainee t({.start_spread = 1}, "lsgd",
              options({{"groups", "2"}, {"prox-local", "0.1"}, {"prox-global", "0.1"}}), comm);
    for (int64_t k = 0; k < 20; ++k) t.step(k);
    t.strategy->settle(t.worker);
    optim::Snapshot before, after;
    before.take([&](Archive& a) { t.visit(a); });
    const Tensor model(t.x.shape());
    t.strategy->write_model(t.worker, model);
    after.take([&](Archive& a) { t.visit(a); });
    EXPECT_EQ(before, after);
    double mean = 0;
    for (const auto& x : comm::gather_numbers(comm, {double(t.x.data<float>()[7])})) mean += x[0] / 4;
    EXPECT_NEAR(model.data<float>()[7], mean, 1e-6);
  });
}

TEST(Lsgd, APullLeavesTheMomentumAlone) {
  in_local_world(2, [&](comm::Communicator& comm) {
    Trainee pulled({.momentum = 0.9f, .zero_gradient = true, .start_spread = 1}, "lsgd",
                   options({{"tau-local", "1"}, {"tau-global", "1"}}), comm);
    const std::vector<float> start = values(pulled.x);
    for (int64_t k = 0; k < 3; ++k) pulled.step(k), pulled.strategy->settle(pulled.worker);
    optim::Snapshot rule, still;
    rule.take([&](Archive& a) { pulled.rule->visit(a); });
    Trainee alone({.momentum = 0.9f, .zero_gradient = true}, "sgd", {});
    for (int64_t k = 0; k < 3; ++k) alone.step(k);
    still.take([&](Archive& a) { alone.rule->visit(a); });
    EXPECT_EQ(rule, still);
    EXPECT_EQ(values(pulled.x) == start, comm.rank() == 0) << "only the leader stays";
  });
}

TEST(Lsgd, RefusesWhatCannotBe) {
  for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{{"groups", "5"},
                                                                                    {"groups", "0"},
                                                                                    {"groups", "two"},
                                                                                    {"tau-local", "0"},
                                                                                    {"tau-local", "5"},
                                                                                    {"tau-global", "3"},
                                                                                    {"loss-window", "0"}})
    try {
      optim::make_strategy("lsgd", options({{flag, value}}), 4);
      ADD_FAILURE() << flag << ' ' << value;
    } catch (const BadOption& e) {
      EXPECT_NE(std::string(e.what()).find("--"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(value == "5" && flag == "tau-local" ? "16" : value),
                std::string::npos)
          << e.what();
    }
}

}  // namespace
}  // namespace skein
