// train_imagenet --simulate: the bits of real runs, times by closed forms, the same log of a seed, refusals.
#include <nlohmann/json.hpp>

#include "optim/strategy.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;
using testing_programs::expect_has;

const std::string kWorldTask =
    "timeout 100 $TRAIN --data synthetic:8x8x1,classes=4,train=96,test=16 --image-size 8 --lr 0.02 "
    "--reference-batch 0 "
    "--augment none --threads 1 --model mlp --batch-size 4 --steps 12 --progress none --no-tensorboard ";
const std::string kFour = R"(
[compute]
step_ms = 100
law = "lognormal"
sigma = 0.5
[network]
mbit_per_s = 100
latency_ms = 0.2
jitter_ms = 0.1
[[host]]
name = "h"
count = 4
)";

class Simulate : public ::testing::Test {
 protected:
  Ended train(const std::string& flags) { return place_.run(kWorldTask + flags); }
  json summary(const std::string& run) { return json::parse(place_.read(run + "/summary.json")); }
  double images_per_second(const std::string& world, const std::string& flags) {
    place_.run("rm -rf timed");
    place_.write("timed.toml", world);
    const Ended e = train("--output timed --simulate timed.toml " + flags);
    EXPECT_EQ(e.status, 0) << e.out << e.err;
    return summary("timed")["images_per_second"].get<double>();
  }
  testing_programs::Workplace place_;
};

std::string name_of(const optim::StrategyRow& row) {
  const std::string name = row.name;
  if (name == "post-local") return name + " --switch-step 4";
  if (name == "qsr") return name + " --qsr-c 0.1";
  if (name == "lsgd") return name + " --groups 2";
  return name;
}

TEST_F(Simulate, GivesTheBitsOfWorkersThatAreProcesses) {
  place_.write("w.toml", kFour);
  for (const optim::StrategyRow& row : optim::strategies()) {
    if (row.asynchronous() || std::string(row.name) == "sgd") continue;
    place_.run("rm -rf real simulated");
    const std::string all = "--algorithm " + name_of(row);
    ASSERT_EQ(train(all + " --workers 4 --output real").status, 0) << place_.read(".err");
    ASSERT_EQ(train(all + " --simulate w.toml --output simulated").status, 0) << place_.read(".err");
    EXPECT_EQ(summary("simulated")["hash"], summary("real")["hash"]) << row.name;
  }
}

TEST_F(Simulate, RecordsOrdersThatRealRunsRepeat) {
  place_.write("w.toml", kFour);
  for (const optim::StrategyRow& row : optim::strategies()) {
    if (!row.asynchronous()) continue;
    place_.run("rm -rf real simulated order*");
    const std::string all = "--algorithm " + name_of(row);
    ASSERT_EQ(train(all + " --simulate w.toml --record order --output simulated").status, 0)
        << place_.read(".err");
    ASSERT_EQ(train(all + " --workers 4 --replay order --output real").status, 0) << place_.read(".err");
    EXPECT_EQ(summary("simulated")["hash"], summary("real")["hash"]) << row.name;
  }
}

TEST_F(Simulate, OfASeedHasTheSameLogBesideAnythingElse) {
  place_.write("w.toml", "log = \"one\"\n" + kFour);
  place_.write("v.toml", "log = \"two\"\n" + kFour);
  for (const std::string row : {"sgp", "gem"}) {
    place_.run("rm -rf a b one two");
    ASSERT_EQ(train("--algorithm " + row + " --simulate w.toml --output a").status, 0) << place_.read(".err");
    ASSERT_EQ(place_
                  .run("(for i in 1 2 3 4; do (while :; do :; done) & done; sleep 6; kill $(jobs -p)) & " +
                       kWorldTask + "--algorithm " + row + " --simulate v.toml --output b")
                  .status,
              0)
        << place_.read(".err");
    EXPECT_GT(place_.read("one").size(), 5000u);
    EXPECT_EQ(place_.read("one"), place_.read("two")) << row;
  }
}

TEST_F(Simulate, TakesTheTimeOfItsComputingAndOfItsCores) {
  const std::string compute = "[compute]\nstep_ms = 100\n", two = "[[host]]\nname = \"h\"\ncount = 2\n";
  EXPECT_NEAR(images_per_second(compute + two, "--algorithm allreduce"), 2 * 4 / 0.1, 1e-3);
  EXPECT_NEAR(
      images_per_second(compute + "[[machine]]\nname = \"m\"\ncores = 1\n" + two + "machine = \"m\"\n",
                        "--algorithm allreduce"),
      2 * 4 / 0.2, 1e-3);
  EXPECT_NEAR(images_per_second(compute + two + "speed = 2\n", "--algorithm allreduce"), 2 * 4 / 0.05, 1e-3);
}

// What slices of the gradient need on the network is hidden while backward goes on, but for the last ones. A
// gradient in one piece is sent when the weights are done: of the six parameters' sixths of backward, the
// last bias's is left.
TEST_F(Simulate, HidesWhatBackwardLeavesTimeFor) {
  const auto step = [&](double ms, const std::string& flags) {
    const std::string world = "[compute]\nstep_ms = " + std::to_string(ms) +
                              "\n[network]\nmbit_per_s = 8\n[[host]]\nname = \"h\"\ncount = 2\n";
    return 2 * 4 / images_per_second(world, flags);
  };
  const std::string slices = "--algorithm allreduce --slice-mb 0.01",
                    whole = "--algorithm allreduce --slice-mb 100";
  const double slow = step(0, slices), slow_whole = step(0, whole);
  EXPECT_GT(slow, 0.1);
  EXPECT_NEAR(step(300, whole), 0.3 - 0.2 / 6 + slow_whole, 0.01 * slow_whole);
  EXPECT_LT(step(300, slices), 0.3 + 0.9 * slow);
  EXPECT_GT(step(300, slices), 0.3);
}

TEST_F(Simulate, EndsWithACheckpointWhereAWorkerIsKilled) {
  place_.write("w.toml", kFour + "[[fault]]\nat_s = 0.8\nworker = 2\n");
  const Ended e = train("--algorithm sgp --simulate w.toml --output run");
  EXPECT_EQ(e.status, 1) << e.out;
  expect_has(e.err, "worker 2 is lost: its process has ended; the others wrote a checkpoint");
  EXPECT_EQ(train("--algorithm gem --simulate w.toml --output center").status, 0) << place_.read(".err");
  EXPECT_EQ(summary("center")["lost"][0]["worker"], 2);
}

TEST_F(Simulate, IsRepeatedByItsConfiguration) {
  place_.write("w.toml", kFour);
  ASSERT_EQ(train("--algorithm sgp --simulate w.toml --output run").status, 0) << place_.read(".err");
  const Ended again = place_.run("$TRAIN --config run/config.toml --output again");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(summary("again")["hash"], summary("run")["hash"]);
}

// The world begins on a day in 2020.
TEST_F(Simulate, IsNamedByTheDayOnWhichItWasStarted) {
  place_.write("w.toml", kFour);
  const Ended e = train("--algorithm sgp --simulate w.toml && ls -d runs/mlp-synthetic-$(date +%Y)*");
  EXPECT_EQ(e.status, 0) << e.out << e.err;
}

// Each holds one of the lock, and no other.
TEST_F(Simulate, HasAlmostAsManyWorkersAsFilesMayBeOpen) {
  place_.write("w.toml", kFour + "[[host]]\nname = \"more\"\ncount = 86\n");
  const Ended e = place_.run(
      "ulimit -n 128; timeout 100 $TRAIN --data synthetic:4x4x1,classes=2,train=200,test=4 --threads 1 "
      "--model mlp --batch-size 2 --steps 2 --algorithm allreduce --simulate w.toml --no-tensorboard "
      "--output run");
  EXPECT_EQ(e.status, 0) << e.out << e.err;
}

TEST_F(Simulate, IsPrintedAsItWouldRun) {
  place_.write("w.toml", kFour);
  const Ended e = train("--algorithm sgp --simulate w.toml --print");
  ASSERT_EQ(e.status, 0) << e.err;
  expect_has(e.out, "\nworkers = 4 ");
  expect_has(train("--algorithm sgp --simulate none.toml --print").err, "none.toml: cannot open this file");
  expect_has(train("--algorithm sgp --peers 4 --simulate w.toml --print").err, "--peers 4: the graph");
  expect_has(train("--algorithm sgp --workers 3 --simulate w.toml --print").err, "3, but w.toml has 4");
  place_.write("ghost.toml", "[compute]\nstep_ms = 1\ngradient = \"ghost\"\n[[host]]\nname = \"h\"\n");
  expect_has(train("--algorithm sgp --simulate ghost.toml --print").err, "--data: does not go with gradient");
}

TEST_F(Simulate, RefusesWhatDoesNotGoWithAWorld) {
  place_.write("w.toml", kFour);
  const std::pair<const char*, const char*> refused[] = {
      {"--workers 3", "--workers: 3, but w.toml has 4; leave it out"},
      {"--hosts a,b", "--hosts: does not go with --simulate"},
      {"--transport tcp", "--transport: does not go with --simulate"},
      {"--seal on", "--seal: does not go with --simulate"},
      {"--min-workers 2", "--min-workers: workers neither join nor are replaced in a simulated world"},
      {"--restarts 0", "--restarts: workers neither join nor are replaced in a simulated world"},
      {"--elastic on", "--elastic: workers neither join nor are replaced in a simulated world"},
      {"--algorithm sgd", "--algorithm sgd"},
      {"--simulate none.toml", "none.toml"},
  };
  for (const auto& [flags, message] : refused) {
    const bool other = std::string(flags).starts_with("--simulate");
    const Ended e = train(std::string("--output run ") +
                          (std::string(flags).starts_with("--algorithm") ? "" : "--algorithm sgp ") +
                          (other ? "" : "--simulate w.toml ") + flags);
    EXPECT_NE(e.status, 0) << flags;
    expect_has(e.err, message);
    EXPECT_FALSE(place_.has("run")) << flags;
  }
}

}  // namespace
}  // namespace skein
