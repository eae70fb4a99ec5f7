// train_imagenet --simulate with gradients that no model computes: closed forms, the same log of
// a seed, refusals.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "optim/strategy.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;
using testing_programs::expect_has;

const std::string kFlat =
    "timeout 100 $TRAIN --progress none --no-tensorboard --lr-schedule constant --warmup-epochs 0 ";

// So many workers, each on a host of its own.
std::string world_of(int workers, const std::string& compute, const std::string& more = "") {
  return "[compute]\nstep_ms = 100\n" + compute + "\n[network]\nmbit_per_s = 1000\nlatency_ms = 0.2\n" +
         more + "\n[[host]]\nname = \"h\"\ncount = " + std::to_string(workers) + "\n";
}
const std::string kQuadratic = "gradient = \"quadratic\"\n", kGhost = "gradient = \"ghost\"\n";

class Flat : public ::testing::Test {
 protected:
  Ended train(const std::string& world, const std::string& flags) {
    place_.run("rm -rf run");
    place_.write("w.toml", world);
    return place_.run(kFlat + "--simulate w.toml --output run " + flags);
  }
  json summary() { return json::parse(place_.read("run/summary.json")); }
  testing_programs::Workplace place_;
};

// f after k steps of gradient descent at rate r: 1/2 mean_j a_j (1 - r a_j)^(2k), with a_j from 1 to 1 / 10.
double descended(int64_t dimension, double rate, int steps) {
  double sum = 0;
  for (int64_t j = 0; j < dimension; ++j) {
    const double a = std::pow(10, -double(j) / double(dimension - 1));
    sum += a * std::pow(1 - rate * a, 2 * steps);
  }
  return sum / double(dimension) / 2;
}

TEST_F(Flat, QuadraticsDescendByTheirClosedForm) {
  const std::string plain = "--lr 0.5 --momentum 0 --weight-decay 0 --steps 30 --algorithm ";
  const std::string section = kQuadratic + "[quadratic]\ndimension = 200\n";
  ASSERT_EQ(train(world_of(1, section), plain + "sgd").status, 0) << place_.read(".err");
  const double alone = summary()["loss"];
  EXPECT_NEAR(alone, descended(200, 0.5, 30), 1e-5 * descended(200, 0.5, 30) + 1e-9);
  // What makes workers differ cancels in their mean.
  ASSERT_EQ(train(world_of(4, section + "zeta = 2\n"), plain + "allreduce").status, 0) << place_.read(".err");
  EXPECT_NEAR(summary()["loss"].get<double>(), alone, 1e-3 * alone + 1e-9);
  EXPECT_EQ(summary()["steps"], 30);
  EXPECT_EQ(summary()["parameters"], 200);
  EXPECT_TRUE(place_.has("run/report.html"));
}

TEST_F(Flat, InterruptedItSaysHowFarItCame) {
  place_.write("w.toml", world_of(4, kGhost));
  const Ended e = place_.run(
      kFlat +
      "--simulate w.toml --output run --algorithm sgp --model resnet20 --steps 100000000 & P=$!\n"
      "for i in $(seq 600); do grep -q '\"step\"' run/metrics.jsonl 2>/dev/null && break; sleep 0.1; done\n"
      "kill -INT $P; wait $P");
  EXPECT_EQ(e.status, 130) << e.err;
  expect_has(e.out, "of 100000000; a simulation cannot be continued");
  EXPECT_GT(summary()["steps"], 0);
  EXPECT_EQ(summary()["interrupted"], true);
  EXPECT_TRUE(place_.has("run/report.html"));
}

TEST_F(Flat, EveryRowTrainsAQuadraticAndThoseThatNeedNoNumbersAGhost) {
  const std::set<std::string> needing = {"lsgd", "sparta", "sparseloco"};
  for (const optim::StrategyRow& row : optim::strategies()) {
    std::string flags = std::string("--lr 0.02 --steps 12 --algorithm ") + row.name;
    if (std::string(row.name) == "post-local") flags += " --switch-step 4";
    if (std::string(row.name) == "qsr") flags += " --qsr-c 0.1";
    if (std::string(row.name) == "lsgd") flags += " --groups 2";
    const int workers = std::string(row.name) == "sgd" ? 1 : 4;
    ASSERT_EQ(train(world_of(workers, kQuadratic), flags).status, 0) << row.name << place_.read(".err");
    EXPECT_LT(summary()["loss"].get<double>(), 0.5) << row.name;
    if (needing.contains(row.name)) continue;
    ASSERT_EQ(train(world_of(workers, kGhost), flags + " --model resnet20").status, 0)
        << row.name << place_.read(".err");
    EXPECT_GE(summary()["seconds"].get<double>(), 1.2 - 1e-6) << row.name;
  }
}

// resnet50's 25,557,032 parameters as bf16 and fp32: a step computes 0.1 s and then sends them over 1 Gbit/s.
TEST_F(Flat, GhostsTakeTheTimeAndTheBytesOfTheirModels) {
  const std::string flags = "--model resnet50 --steps 10 --algorithm ";
  for (const auto& [wire, bytes] : std::vector<std::pair<std::string, double>>{{"fp32", 4}, {"bf16", 2}}) {
    const double all = bytes * 25557032;
    ASSERT_EQ(train(world_of(3, kGhost), flags + "sgp --wire " + wire).status, 0) << place_.read(".err");
    EXPECT_NEAR(summary()["bytes_per_step"].get<double>(), all, 1e-3 * all);
    EXPECT_NEAR(summary()["seconds"].get<double>() / 10, 0.1 + all / 1.25e8, 0.01 * all / 1.25e8);
    const std::string at_once = kGhost + "forward = 1\n";  // backward takes no time
    ASSERT_EQ(train(world_of(4, at_once), flags + "allreduce --wire " + wire).status, 0)
        << place_.read(".err");
    EXPECT_NEAR(summary()["seconds"].get<double>() / 10, 0.1 + 2 * 0.75 * all / 1.25e8, 0.02 * all / 1.25e8);
  }
}

// Sums of slices move on between the tensors of backward, in messages that each answer one that has come, and
// only the last slice of the weights, of 1 MiB at most, is waited for, and that of norms and biases.
TEST_F(Flat, SlicesTravelWhileBackwardGoesOn) {
  const std::string world = "[compute]\nstep_ms = 1000\n" + kGhost +
                            "[network]\nmbit_per_s = 50\n[[host]]\nname = \"h\"\ncount = 4\n";
  constexpr double kRest = 4 * (19 * 2 * 64 + 1024);  // bytes of norms and biases, each padded
  for (const double mib : {100.0, 0.5, 0.25}) {
    const Ended e =
        train(world, "--model resnet20 --steps 10 --algorithm allreduce --slice-mb " + std::to_string(mib));
    ASSERT_EQ(e.status, 0) << e.err;
    const double waited = summary()["seconds"].get<double>() / 10 - 1,
                 last = (std::min(mib, 1.0) * (1 << 20) + kRest) * 2 * 0.75 / 6.25e6;
    EXPECT_NEAR(waited, last, 0.02 * last) << mib;
    EXPECT_GT(4 * summary()["parameters"].get<double>(), 1.2 * (1 << 20)) << "there are more slices";
  }
}

// What needs no weights is done while shares travel, in all steps but the first.
TEST_F(Flat, WhatNeedsNoWeightsIsDoneWhileAWorkerWaits) {
  const std::string flags = "--model resnet50 --steps 10 --algorithm ";
  const double travels = 4 * 25557032 / 1.25e8;
  for (const double ahead : {0.02, 0.06, 0.3}) {
    const std::string world = kGhost + "ahead_ms = " + std::to_string(1e3 * ahead);
    ASSERT_EQ(train(world_of(3, world), flags + "sgp").status, 0) << place_.read(".err");
    const double saved = std::min(ahead, 0.1);  // there is no more to a step
    EXPECT_NEAR(summary()["seconds"].get<double>(), 10 * (0.1 + travels) - 9 * saved, 0.02) << ahead;
    ASSERT_EQ(train(world_of(1, world), flags + "sgd").status, 0) << place_.read(".err");
    EXPECT_NEAR(summary()["seconds"].get<double>(), 1, 1e-5) << "nobody waits";
  }
}

TEST_F(Flat, CountsTheImagesOfTheGlobalBatch) {
  ASSERT_EQ(train(world_of(4, kGhost), "--steps 10 --algorithm osgp --global-batch 100").status, 0)
      << place_.read(".err");
  EXPECT_EQ(summary()["global_batch"], 100);
  EXPECT_NEAR(summary()["images_per_second"].get<double>(), 1000, 50) << "steps of 0.1 s";
}

TEST_F(Flat, OfASeedHasTheSameLogBesideAnythingElse) {
  const std::string law = "law = \"lognormal\"\nsigma = 0.4\n", flags = "--steps 6 --lr 0.01 --algorithm ";
  const std::string load =
      " & (for i in 1 2; do (while :; do :; done) & done; sleep 2; kill $(jobs -p)) & wait %1";
  for (const auto& [row, gradient] : std::vector<std::pair<std::string, std::string>>{
           {"sgp", kGhost}, {"osgp", kQuadratic}, {"gem", kQuadratic}, {"local-sgd --tau 3", kGhost}}) {
    const std::string world = "log = \"LOG\"\n" + world_of(80, law + gradient, "jitter_ms = 0.1\n");
    std::string of_log[2];
    for (const bool loaded : {false, true}) {
      const Ended e = train(world, flags + row + (loaded ? load : ""));
      ASSERT_EQ(e.status, 0) << e.err;
      of_log[loaded] = place_.read("LOG");
      EXPECT_GT(of_log[loaded].size(), 1000u);
    }
    EXPECT_EQ(of_log[0], of_log[1]) << row << ' ' << gradient;
  }
}

TEST_F(Flat, ThatALostWorkerEndsHasAReportOfItsStepsUntilThen) {
  place_.write("log", "of an earlier run");
  const Ended e = train("log = \"log\"\n" + world_of(4, kGhost) + "[[fault]]\nat_s = 0.5\nworker = 2\n",
                        "--steps 200 --algorithm sgp");
  EXPECT_EQ(e.status, 1) << e.out;
  expect_has(e.err, "rank 2 is lost");
  expect_has(e.out, "stopped after step ");
  expect_has(place_.read("log"), "0.500000000 2 is killed\n");
  EXPECT_EQ(summary()["interrupted"], true);
  EXPECT_TRUE(place_.has("run/report.html"));
}

TEST_F(Flat, AHostOfTheWorldIsANodeOfAHierarchyAndAGroupOfLeaders) {
  const std::string two_hosts = "[compute]\nstep_ms = 100\n" + kQuadratic +
                                "[network]\nmbit_per_s = 10\nlatency_ms = 0.2\n"
                                "[[host]]\nname = \"h\"\ncount = 2\nworkers = 3\n";
  const std::pair<std::string, std::string> same[] = {
      {"allreduce --hierarchy host", "allreduce --hierarchy 3"}, {"lsgd", "lsgd --groups 2"}};
  for (const auto& [by_host, by_number] : same) {
    std::vector<json> ends;
    for (const std::string& row : {by_host, by_number}) {
      ASSERT_EQ(train(two_hosts, "--lr 0.02 --steps 12 --algorithm " + row).status, 0) << place_.read(".err");
      ends.push_back(summary());
    }
    for (const char* figure : {"seconds", "bytes_per_step", "loss"})
      EXPECT_EQ(ends[0][figure], ends[1][figure]) << by_host << ' ' << figure;
  }
}

TEST_F(Flat, ARunWhoseWorkersAreAllKilledHasFailed) {
  const std::string machine = "machine = \"m\"\n[[machine]]\nname = \"m\"\ncores = 8\n";
  const std::string end = "[[fault]]\nat_s = 0.25\nkind = \"kill-machine\"\nhost = \"h-1\"\n";
  const Ended e = train(world_of(4, kGhost) + machine + end, "--steps 200 --algorithm sgp");
  EXPECT_EQ(e.status, 1) << e.out;
  expect_has(e.err, "all simulated workers have been killed");
}

TEST_F(Flat, TheLogIsBesideTheWorldFileInADirectoryThatIsThere) {
  place_.write("worlds/w.toml", "log = \"log\"\n" + world_of(2, kGhost));
  const std::string flags = "--output run --steps 3 --algorithm sgp --simulate ";
  ASSERT_EQ(place_.run(kFlat + flags + "worlds/w.toml").status, 0) << place_.read(".err");
  EXPECT_TRUE(place_.has("worlds/log"));
  EXPECT_FALSE(place_.has("log"));
  const Ended e = train("log = \"none/log\"\n" + world_of(2, kGhost), "--steps 3 --algorithm sgp");
  EXPECT_NE(e.status, 0);
  expect_has(e.err, "w.toml: log: there is no directory none; create it");
  EXPECT_FALSE(place_.has("run"));
}

TEST_F(Flat, RefusesFlagsWithoutEffect) {
  const std::string sgp = "--steps 5 --algorithm sgp ";
  for (const std::string flag :
       {"--data synthetic:8x8x1", "--augment mirror", "--precision bf16", "--checkpoint-every 500steps",
        "--eval-every 2", "--export-onnx m.onnx", "--recompute norms", "--threads 1", "--data-threads 2",
        "--clip-norm 1", "--decay-all", "--layer-decay 0.5", "--mixup 0.2", "--bn-policy mix",
        "--loss-scale 8", "--keep-checkpoints 3", "--tf32", "--memory-limit 1", "--record order"}) {
    const std::string row = flag == "--record order" ? "--steps 5 --algorithm gem " : sgp;
    const std::string name = flag.substr(0, flag.find(' '));
    for (const std::string& gradient : {kGhost, kQuadratic}) {
      const Ended e = train(world_of(2, gradient), row + flag);
      EXPECT_NE(e.status, 0) << flag;
      expect_has(e.err, name + ": does not go with gradient = \"" +
                            (gradient == kGhost ? "ghost" : "quadratic") +
                            "\" in w.toml, whose runs have no data, no model and no device; leave it out\n");
      EXPECT_FALSE(place_.has("run")) << flag;
    }
  }
  for (const std::string flag : {"--model resnet20", "--image-size 64", "--slice-mb 2"}) {
    EXPECT_EQ(train(world_of(2, kGhost), sgp + flag).status, 0) << place_.read(".err");
    expect_has(train(world_of(2, kQuadratic), sgp + flag).err, ": does not go with gradient = \"quadratic\"");
  }
}

TEST_F(Flat, IsRepeatedByItsConfigurationAndNotResumed) {
  const std::string section = kQuadratic + "[quadratic]\ndimension = 20\n";
  const std::string flags = "--lr 0.02 --batch-size 32 --algorithm gem ";
  ASSERT_EQ(train(world_of(3, section), flags + "--steps 9").status, 0) << place_.read(".err");
  const Ended again = place_.run("$TRAIN --config run/config.toml --output again");
  ASSERT_EQ(again.status, 0) << again.err;
  const json first = summary(), second = json::parse(place_.read("again/summary.json"));
  for (const char* figure : {"hash", "loss", "seconds"}) EXPECT_EQ(first[figure], second[figure]) << figure;
  const Ended resumed = place_.run("$TRAIN --resume run --steps 20");
  EXPECT_NE(resumed.status, 0);
  expect_has(resumed.err, "--resume: does not go with gradient = \"quadratic\" in w.toml, whose runs leave");
  const Ended there = place_.run("$TRAIN --config run/config.toml --output run");
  EXPECT_EQ(there.status, 2);
  expect_has(there.err,
             "--output run: holds a run already; choose another directory, or remove it (rm -r run)");
}

TEST_F(Flat, RefusesWhatNeedsAModelOrNumbers) {
  const std::string sgp = "--steps 5 --algorithm sgp ";
  const std::tuple<std::string, std::string, std::string> refused[] = {
      {world_of(2, kGhost), "--steps 5 --algorithm lsgd --groups 1",
       "lsgd chooses its leaders by their losses"},
      {world_of(2, kGhost), "--steps 5 --algorithm sparta", "sparta sends a few of the model's numbers"},
      {world_of(2, kGhost), "--steps 5 --algorithm sparseloco",
       "sparseloco sends a few of the model's numbers"},
      {world_of(2, kGhost), sgp + "--wire int8",
       "--wire: int8 codes numbers, which gradient = \"ghost\" in w.toml"},
      {world_of(2, kGhost), "--algorithm sgp",
       "--steps is needed: gradient = \"ghost\" in w.toml has no epochs"},
      {world_of(2, kGhost), sgp + "--data synthetic:8x8x1", "--data: does not go with gradient = \"ghost\""},
      {world_of(2, kGhost), sgp + "--model resnet51", "--model resnet51: there is no such model"},
      {world_of(2, kQuadratic), sgp + "--ema 0.9", "--ema: does not go with gradient = \"quadratic\""},
      {world_of(2, kQuadratic), "--steps 5 --algorithm sgd", "--algorithm sgd"},
      {world_of(2, kQuadratic), sgp + "--optimizer muon", "--optimizer: muon orthogonalizes matrices, and"},
      {world_of(2, kQuadratic), sgp + "--batch-size 8,4", "--batch-size: shares that differ do not go with"},
      {world_of(2, kQuadratic), "--steps 5 --algorithm gem --servers dedicated", "--servers: dedicated"},
      {world_of(4, kGhost), sgp + "--peers 4", "--peers 4: the graph exponential offers 3 with 4 workers"},
      {world_of(4, kQuadratic), "--steps 5 --algorithm lsgd --groups 8", "--groups 8: with 4 workers 1 to 4"},
      {world_of(3, kQuadratic), sgp + "--topology bipartite-exponential",
       "needs an even number of workers, not 3"},
      {world_of(2, kGhost + "[quadratic]\nzeta = 1\n"), sgp, "quadratic: needs gradient = \"quadratic\""},
      {world_of(2, kQuadratic + "[quadratic]\nnoise = -1\n"), sgp, "noise: -1 is out of range"},
      {world_of(2, "gradient = \"spooky\"\n"), sgp, "gradient: there is no 'spooky'"},
      {world_of(2, kQuadratic), "--steps 60 --lr 50 --momentum 0 --algorithm sgp", "training has diverged"},
  };
  for (const auto& [world, flags, message] : refused) {
    const Ended e = train(world, flags);
    EXPECT_NE(e.status, 0) << flags;
    expect_has(e.err, message);
    EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
  }
}

}  // namespace
}  // namespace skein
