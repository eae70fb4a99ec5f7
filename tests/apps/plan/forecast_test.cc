// What --plan makes of a probe: the world, forecasts, what limits them, and which is recommended.
#include "apps/plan/plan.h"

#include <gtest/gtest.h>

#include "apps/config/algorithm_values.h"
#include "engine/words/find_row.h"
#include "optim/strategy.h"
#include "tests/support/says.h"

namespace skein::apps {
namespace {

// Hosts a, b, c of one worker each, which compute for 100 ms; between two hosts: 1 ms and the bytes.
Probed probed(const std::function<double(int, int)>& bytes_per_second) {
  constexpr int kHosts = 3;
  Probed p;
  for (int h = 0; h < kHosts; ++h) {
    const std::string name(1, char('a' + h));
    p.workers.push_back({.host = name, .network = name, .machine = name, .forward = 0.03, .backward = 0.07});
    p.fronts.push_back(h);
  }
  for (const int64_t bytes : {4, 1 << 18, 1 << 20}) {
    comm::LinkTimes t{bytes, 3, std::vector<double>(kHosts * kHosts, 0)};
    for (int a = 0; a < kHosts; ++a)
      for (int b = 0; b < kHosts; ++b)
        if (a != b) t.seconds[size_t(a * kHosts + b)] = 1e-3 + double(bytes) / bytes_per_second(a, b);
    p.between.push_back(t);
  }
  p.ghost = {.kind = GradientPlan::Kind::kGhost, .classes = 10, .height = 32, .width = 32, .channels = 3};
  p.steps_per_epoch = 100, p.global_batch = 3 * 64;
  return p;
}

Config config() {
  Config c;
  c.model = "resnet20", c.batch_size = BatchSize(64), c.workers = 3;
  return c;
}

const std::vector<Candidate> kFew = {
    {"allreduce", ""}, {"diloco", "--tau 50"}, {"sgp", "--peers 1 --wire bf16"}};

Plan planned(const Config& c, const Probed& p, const std::vector<Candidate>& tried = kFew) {
  Plan plan{.config = c, .command = "train_imagenet", .probed = p};
  plan.forecasts = forecasts(c, p, tried, plan.refused);
  return plan;
}

const Forecast& of(const Plan& p, const std::string& algorithm, const std::string& flags) {
  for (const Forecast& f : p.forecasts)
    if (f.what.algorithm == algorithm && f.what.flags == flags) return f;
  throw Error("there is no forecast for " + algorithm);
}

TEST(ProbedWorld, HasTheRatesLatenciesAndSlowLinksOfTheProbe) {
  const WorldFile w = world_of(probed([](int a, int b) { return a + b == 3 ? 1e6 : 1e7; }));  // b to c
  ASSERT_EQ(w.site.hosts.size(), 3u);
  for (const auto& h : w.site.hosts) {
    EXPECT_NEAR(h.rate, 1e7, 1);
    EXPECT_NEAR(h.latency, 0.5e-3, 1e-6);
  }
  ASSERT_EQ(w.site.links.size(), 1u);
  EXPECT_EQ(w.site.links[0].a, 1);
  EXPECT_EQ(w.site.links[0].b, 2);
  EXPECT_NEAR(w.site.links[0].rate, 1e6, 1);
  EXPECT_NEAR(w.pace.step, 0.1, 1e-9);
  EXPECT_NEAR(w.pace.forward, 0.3, 1e-9);
}

// Two workers of one machine that take 1.5 times as long together have 2 / 1.5 cores.
TEST(ProbedWorld, HasCoresForStepsAsLongAsThoseOfAllTogether) {
  Probed p = probed([](int, int) { return 1e8; });
  p.workers[1].machine = p.workers[0].machine;
  p.workers[0].crowded = p.workers[1].crowded = 1.5;
  p.workers[2].backward = 0.17;
  const WorldFile w = world_of(p);
  EXPECT_EQ(w.site.hosts[0].machine, w.site.hosts[1].machine);
  EXPECT_NEAR(w.site.machines[0].cores, 2 / 1.5, 1e-9);
  EXPECT_EQ(w.site.machines[1].cores, 0);
  EXPECT_NEAR(w.pace.step / w.speeds[0], 0.1 / 1.5, 1e-9);
  EXPECT_NEAR(w.pace.step / w.speeds[2], 0.2, 1e-9);
  p.workers[1].backward = 0.09;  // it had less of the cores for a while
  const WorldFile uneven = world_of(p);
  EXPECT_EQ(uneven.speeds[0], uneven.speeds[1]);
  EXPECT_NEAR(uneven.pace.step / uneven.speeds[0], 0.11 / 1.5, 1e-9);
}

TEST(ProbedWorld, HasWhatIsLeftOfItsRatesWhenAllSendAtOnce) {
  Probed p = probed([](int, int) { return 1e7; });
  p.sum = {3'000'000, 2 * (0.001 + 2 * 0.1) / 0.8};  // a third to each of two, and back
  EXPECT_NEAR(world_of(p).site.shared.left(1e6), 0.8, 1e-4);
  p.gossip = {4'000'000, (0.001 + 2 * 0.4) / 0.5};
  EXPECT_NEAR(world_of(p).site.shared.left(4e6), 0.5, 1e-4);
  p.slices = {3'000'000, 2 * (0.001 + 2 * 0.1) / 0.9, 10};
  EXPECT_NEAR(world_of(p).site.shared.left(1e5), 0.9, 1e-4);
  EXPECT_NEAR(world_of(p).site.shared.left(1e6), 0.8, 1e-4);
  EXPECT_SAYS(in_words(planned(config(), p, {{"diloco", "--tau 50"}})),
              "of which 90, 80, 50 % are left when messages of 100, 1000, 4000 kB share them\n");
  p.sum.seconds = 0.1;  // faster than the round trips
  EXPECT_EQ(world_of(p).site.shared.left(1e6), 1);
  Probed slow = probed([](int a, int b) { return a + b == 3 ? 1e6 : 1e7; });
  slow.sum = {3'000'000, 2 / 0.8};  // that link's one message each way
  EXPECT_NEAR(world_of(slow).site.shared.left(1e6), 0.8, 2e-3);
}

// Steps of 100 ms become 10 ms longer when each of three hosts sends 2 MB and receives as much in them: on a
// machine that a worker has to itself that is 10 ms of a core for 2 MB, half of it spent on what it receives.
TEST(ProbedWorld, HasTheWorkOfMessages) {
  Probed p = probed([](int, int) { return 1e8; });
  EXPECT_EQ(world_of(p).site.work, 0);
  p.burden = {1'000'000, 0.01};
  const WorldFile w = world_of(p);
  EXPECT_NEAR(w.site.work, 0.01 / 2e6, 1e-12);
  p.one_way = {2'000'000, 0.012};  // of each host to the next
  EXPECT_NEAR(world_of(p).site.work_one_way, 0.012 / 2e6, 1e-12);
  for (const auto& m : w.site.machines) EXPECT_EQ(m.cores, 1);
  p.burden.seconds = 0.0005;  // less than noise
  EXPECT_EQ(world_of(p).site.work, 0);
  // All on one machine of two cores: 10 ms of both, for three times 2 MB.
  p.burden.seconds = 0.01;
  for (ProbedWorker& one : p.workers) one.machine = "a", one.crowded = 1.5;
  EXPECT_NEAR(world_of(p).site.work, 0.01 * 2 / 6e6, 1e-12);
  EXPECT_EQ(world_of(p).site.machines.at(0).cores, 2);
}

// What update does with vectors is simulated for itself: 20 MB at a tenth of a nanosecond a byte are 2 of its
// 5 ms. Workers of one machine need longer for a byte by the same factor as for a step.
TEST(ProbedWorld, HasTheTimeOfVectors) {
  Probed p = probed([](int, int) { return 1e8; });
  for (ProbedWorker& one : p.workers) one.update = 0.005, one.updated = 20e6, one.byte = 1e-10;
  EXPECT_NEAR(world_of(p).pace.step, 0.103, 1e-9);
  EXPECT_NEAR(world_of(p).pace.vector, 1e-10, 1e-15);
  for (ProbedWorker& one : p.workers) one.machine = "a", one.crowded = 1.5;
  EXPECT_NEAR(world_of(p).pace.vector, 1e-10 / 1.5, 1e-15);
  for (ProbedWorker& one : p.workers) one.updated = 1e9;  // no more than update has taken
  EXPECT_NEAR(world_of(p).pace.step, 0.1 / 1.5, 1e-9);
}

// A step of SGD with momentum moves 24 bytes for each number (it reads x twice), and its copy of x and of the
// momentum 16; a round of 50 steps does little more.
TEST(Forecast, CountsWhatAlgorithmsDoWithVectors) {
  const auto step = [](double byte) {
    Probed p = probed([](int, int) { return 1e9; });
    for (ProbedWorker& one : p.workers) one.byte = byte;
    return 3 * 64 / planned(config(), p, {{"local-sgd", "--tau 50"}}).forecasts.at(0).images_per_second;
  };
  const double free = step(0), slow = step(1e-9);
  const double bytes = (slow - free) / 1e-9 / 272474;  // parameters
  EXPECT_GT(bytes, 40);
  EXPECT_LT(bytes, 42);
  EXPECT_NEAR(step(2e-9) - slow, slow - free, 1e-6);
}

// allreduce of 270,000 parameters among three: 2 (n - 1) / n of 1.09 MB at 1 MB/s.
TEST(Forecast, KnowsTimesAndWhatLimitsThem) {
  const Config c = config();
  const Plan slow = planned(c, probed([](int a, int b) { return a + b == 3 ? 1e6 : 1e8; }));
  const Forecast& sum = of(slow, "allreduce", "");
  EXPECT_EQ(sum.limit, "link b to c");
  EXPECT_LT(sum.images_per_second, 3 * 64 / 0.3);
  EXPECT_GT(of(slow, "diloco", "--tau 50").images_per_second, 3 * sum.images_per_second);
  EXPECT_EQ(of(slow, "sgp", "--peers 1 --wire bf16").accuracy, std::nullopt);
  EXPECT_EQ(sum.accuracy, 0);
  // As bench/RESULTS.md has it; an empty column would let allreduce win all that is close.
  EXPECT_LT(of(slow, "diloco", "--tau 50").accuracy.value_or(0), -0.2);

  Probed straggling = probed([](int, int) { return 1e9; });
  straggling.workers[2].backward = 0.37;
  EXPECT_EQ(of(planned(c, straggling), "allreduce", "").limit, "straggler c");
  straggling.workers[2].loading = 0.5;
  EXPECT_EQ(of(planned(c, straggling), "allreduce", "").limit, "straggler c");
  for (ProbedWorker& w : straggling.workers) w.backward = 0.07, w.loading = 0.5;
  EXPECT_EQ(of(planned(c, straggling), "allreduce", "").limit, "loader of a");
}

TEST(Forecast, CountsTheImagesOfTheGlobalBatch) {
  Config c = config();
  Probed p = probed([](int, int) { return 1e9; });
  const double of_64_each = of(planned(c, p), "allreduce", "").images_per_second;
  c.global_batch = p.global_batch = 600;
  EXPECT_NEAR(of(planned(c, p), "allreduce", "").images_per_second, of_64_each * 600 / (3 * 64), 1e-3);
}

// No wait of a ghost has an end, but its world has one, after thirty days.
TEST(Forecast, IsRefusedWithReasonsWhereARunDoesNotEnd) {
  const Config c = config();
  const auto bytes_per_second = [](double rate) {
    return [=](int a, int b) { return a + b == 3 ? rate : 1e6; };
  };
  const Plan slow = planned(c, probed(bytes_per_second(1e3)));  // half an hour for a sum
  EXPECT_EQ(slow.forecasts.size(), kFew.size());
  const Plan stuck = planned(c, probed(bytes_per_second(10)));
  ASSERT_EQ(stuck.forecasts.size(), 1u);
  EXPECT_EQ(stuck.forecasts[0].what.algorithm, "diloco");
  ASSERT_EQ(stuck.refused.size(), 2u);
  EXPECT_SAYS(stuck.refused[0], "allreduce: the simulated world cannot go on");
  EXPECT_SAYS(stuck.refused[1], "sgp --peers 1 --wire bf16: the simulated world cannot go on");
}

TEST(Forecast, CoversEveryRowThatHasAForecast) {
  const Plan p = planned(config(), probed([](int, int) { return 1e8; }), candidates(config()));
  const std::vector<std::string> others = {"sgd", "lsgd",   "palsgd",    "post-local",
                                           "qsr", "sparta", "sparseloco"};
  for (const optim::StrategyRow& row : optim::strategies()) {
    const bool there = std::any_of(p.forecasts.begin(), p.forecasts.end(),
                                   [&](const Forecast& f) { return f.what.algorithm == row.name; });
    const bool refused = std::any_of(p.refused.begin(), p.refused.end(), [&](const std::string& line) {
      return line.starts_with(std::string(row.name) + ":") || line.starts_with(std::string(row.name) + " ");
    });
    const bool other = std::find(others.begin(), others.end(), row.name) != others.end();
    EXPECT_EQ(there || refused, !other) << row.name;
  }
  for (size_t i = 1; i < p.forecasts.size(); ++i)
    EXPECT_GE(p.forecasts[i - 1].images_per_second, p.forecasts[i].images_per_second);
}

TEST(Plan, SaysSoWhenOneWorkerIsFaster) {
  const Config c = config();
  Plan p = planned(c, probed([](int, int) { return 1e8; }));
  EXPECT_TRUE(verdict(p).starts_with("Fastest: ")) << verdict(p);
  for (Forecast& f : p.forecasts) f.images_per_second /= 10;
  EXPECT_TRUE(verdict(p).starts_with("One worker alone is faster: 640 images/s")) << verdict(p);
  p.fewer = "train_imagenet --lr 1";
  const std::string said = in_words(p);
  EXPECT_SAYS(said, "to start that on a:\n  train_imagenet --lr 1 --workers 1 --algorithm sgd --predicted ");
  EXPECT_SAYS(plan_page(p),
              "to start that on a:</p>\n<p><code>train_imagenet --lr 1 --workers 1 --algorithm sgd");
  EXPECT_SAYS(plan_page(p), "to start all 3 workers nevertheless:</p>\n<p><code>train_imagenet --algorithm");
  EXPECT_LT(said.find("to start that"), said.find("to start all 3 workers nevertheless:\n  train_imagenet "));
}

TEST(Plan, SaysSoWhenOneHostIsFaster) {
  const Config c = config();
  Plan p = planned(c, probed([](int, int) { return 1e8; }));
  p.fewer = "train_imagenet";
  p.probed.workers[1].network = p.probed.workers[2].network = "b", p.probed.fronts = {0, 1};
  for (Forecast& f : p.forecasts) f.images_per_second = 1000 - double(&f - &p.forecasts[0]);
  EXPECT_TRUE(verdict(p).starts_with("One machine is faster: the workers of one host compute 1280"))
      << verdict(p);
  EXPECT_SAYS(command_of(p, *faster_alone(p)), "train_imagenet --workers 2 --algorithm allreduce");
}

// bench/predicted finds settings by the two spaces.
TEST(Plan, PutsSettingsBelowEachOtherWhateverLimitsThem) {
  const Config c = config();
  Plan p = planned(c, probed([](int, int) { return 1e8; }));
  p.forecasts[1].limit = "messages within the host, or a straggler with a long name";
  std::istringstream lines(in_words(p));
  std::vector<size_t> columns;
  for (std::string line; std::getline(lines, line);)
    for (const Forecast& f : p.forecasts)
      if (line.find(f.limit) != std::string::npos &&
          line.ends_with("  " + text(f.what.algorithm, f.what.flags.empty() ? "" : " ", f.what.flags)))
        columns.push_back(line.find("  " + f.what.algorithm));
  ASSERT_EQ(columns.size(), p.forecasts.size());
  for (const size_t column : columns) EXPECT_EQ(column, columns[0]);
}

TEST(Plan, NamesARangeOfTimesOnlyIfItsEndsDiffer) {
  const Config c = config();
  Plan p = planned(c, probed([](int, int) { return 1e8; }));
  for (ProbedWorker& w : p.probed.workers) w.forward = 0, w.backward = 1e-4;
  p.probed.workers[2].backward = 1.2e-4;
  EXPECT_SAYS(in_words(p), "computes for 0.1 ms; 3 hosts");
  p.probed.workers[2].backward = 2e-4;
  EXPECT_SAYS(in_words(p), "computes for 0.1 ms to 0.2 ms (c); 3 hosts");
}

TEST(Plan, PrefersAccuracyWhereSpeedIsTheSame) {
  const Config c = config();
  Plan p{.config = c, .command = "train_imagenet", .probed = probed([](int, int) { return 1e8; })};
  const auto add = [&](const char* name, double images, std::optional<double> accuracy) {
    p.forecasts.push_back({.what = {name, ""}, .images_per_second = images});
    p.forecasts.back().accuracy = accuracy;
  };
  add("d2", 1000, {}), add("osgp", 990, -0.7), add("sgp", 980, -0.2), add("allreduce", 900, 0);
  EXPECT_EQ(to_start(p).what.algorithm, "sgp");
  EXPECT_NE(
      plan_page(p).find("<code>train_imagenet --algorithm d2 --predicted images/s=1000,bytes/step=0</code>"),
      std::string::npos);
}

}  // namespace
}  // namespace skein::apps
