// Training by recorded steps gives the same bits as plain training, from memory that
// is scrambled between steps.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/train/trainer.h"
#include "comm/communicator/world_of_one.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

using testing_programs::Workplace;

// 52 images in batches of 8: the last batch of an epoch has 4. Three epochs are 21 steps.
Config config_for(const std::string& model) {
  Config c;
  c.data = "synthetic:16x16x1,classes=4,train=52,test=20";
  c.model = model;
  c.augment = "shift";
  c.batch_size = 8;
  c.epochs = 3;
  c.lr = 1;
  c.label_smoothing = 0.1;
  c.threads = 2;
  c.data_threads = 1;
  c.eval_every = 2;
  c.log_every = 3;
  c.checkpoint_every = "0";
  return c;
}

void scramble(const MemoryPool& pool) {
  for (const auto& [p, bytes] : pool.blocks()) std::memset(p, 0xff, size_t(bytes));
}

struct Trained {
  Outcome outcome;
  std::string how;      // StepGraphs::describe()
  std::string metrics;  // metrics.jsonl
};

// Trains in `directory` until `steps` are taken or to the end; continues the run that is there.
Trained train(Config c, const char* graphs, const std::string& directory, int64_t steps = -1,
              bool resume = false) {
  c.cuda_graphs = graphs;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
  Progress progress(nowhere.get());
  comm::WorldOfOne one;
  Survivors alone(one, false);
  Trainer trainer(c, open_setup(c), directory, progress, alone);
  if (resume) trainer.resume(find_checkpoint(directory));
  Trained t;
  t.outcome = trainer.run([&] {
    scramble(trainer.graphs().gradients().memory());
    return trainer.step_number() == steps;
  });
  t.how = trainer.graphs().describe();
  std::ifstream in(directory + "/metrics.jsonl");
  t.metrics = {std::istreambuf_iterator<char>(in), {}};
  return t;
}

struct Case {
  const char* name;
  const char* model;
  void (*set)(Config&);
};

class StepGraphsTest : public ::testing::TestWithParam<Case> {};

TEST_P(StepGraphsTest, ReplayedStepsTrainTheSameBits) {
  const Workplace w;
  Config c = config_for(GetParam().model);
  GetParam().set(c);
  const Trained off = train(c, "off", w.path() / "off"), on = train(c, "on", w.path() / "on");
  EXPECT_EQ(off.how, "off");
  EXPECT_EQ(on.how.find("replayed at 17 of 21 steps, in "), 0u)
      << on.how;  // two shapes, warmed up and recorded
  EXPECT_EQ(on.outcome.hash, off.outcome.hash);
  ASSERT_TRUE(on.outcome.score && off.outcome.score);
  EXPECT_EQ(on.outcome.score->loss, off.outcome.score->loss);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, StepGraphsTest,
    ::testing::Values(Case{"plain", "mlp",
                           [](Config& c) {
                             c.momentum = 0;
                             c.nesterov = false;
                           }},
                      Case{"dropout", "gem-cnn", [](Config&) {}}, Case{"norms", "small-cnn", [](Config&) {}},
                      Case{"bf16", "small-cnn", [](Config& c) { c.precision = "bf16"; }},
                      Case{"accumulate", "gem-cnn", [](Config& c) { c.accumulate = 3; }},
                      Case{"clip", "small-cnn", [](Config& c) { c.clip_norm = 0.5; }},
                      Case{"mixup", "small-cnn", [](Config& c) { c.mixup = 0.4; }},
                      Case{"mixup_and_cutmix_in_passes", "gem-cnn",
                           [](Config& c) { c.mixup = 0.4, c.cutmix = 1, c.accumulate = 2; }},
                      Case{"average", "mlp", [](Config& c) { c.ema = 0.9; }},
                      Case{"adamw", "small-cnn", [](Config& c) { c.optimizer = "adamw", c.lr = 0.01; }},
                      Case{"lamb", "small-cnn", [](Config& c) { c.optimizer = "lamb", c.lr = 0.1; }},
                      Case{"muon", "gem-cnn", [](Config& c) { c.optimizer = "muon", c.lr = 0.1; }},
                      Case{"gpa", "small-cnn", [](Config& c) { c.optimizer = "gpa", c.lr = 0.01; }},
                      Case{"schedule_free", "mlp",
                           [](Config& c) {
                             c.optimizer = "gpa", c.lr = 0.01;
                             c.of_algorithm["gpa-x"] = "schedule-free";
                           }},
                      Case{"sam", "gem-cnn", [](Config& c) { c.optimizer = "sam", c.accumulate = 2; }},
                      Case{"rates", "small-cnn",
                           [](Config& c) { c.layer_decay = 0.5, c.head_rate = 2, c.norm_rate = 0.5; }}),
    [](const auto& info) { return std::string(info.param.name); });

// Resumes recorded runs as plain ones, and the reverse.
TEST(StepGraphsTest, ACheckpointIsTheSameEitherWay) {
  const Workplace w;
  const Config c = config_for("gem-cnn");
  const std::string whole = train(c, "off", w.path() / "whole").outcome.hash;
  for (const auto& [first, second] : {std::pair{"on", "on"}, {"on", "off"}, {"off", "on"}}) {
    const std::string dir = w.path() / text(first, second);
    EXPECT_TRUE(train(c, first, dir, 10).outcome.interrupted);
    EXPECT_EQ(train(c, second, dir, -1, true).outcome.hash, whole) << first << ' ' << second;
  }
}

// Numbers are read one step later, but are recorded under their own step.
TEST(StepGraphsTest, TheRecordIsTheSame) {
  const Workplace w;
  Config c = config_for("mlp");
  c.log_every = 2;
  const auto steps = [](const Trained& t) {
    std::vector<nlohmann::json> all;
    std::istringstream in(t.metrics);
    for (std::string line; std::getline(in, line);) {
      nlohmann::json e = nlohmann::json::parse(line);
      if (e["event"] == "step" || e["event"] == "epoch" || e["event"] == "eval") all.push_back(e);
    }
    return all;
  };
  const auto off = steps(train(c, "off", w.path() / "off")), on = steps(train(c, "on", w.path() / "on"));
  ASSERT_EQ(off.size(), on.size());
  EXPECT_GT(off.size(), 14u);
  for (size_t i = 0; i < off.size(); ++i) {
    EXPECT_EQ(off[i]["event"], on[i]["event"]);
    EXPECT_EQ(off[i]["step"], on[i]["step"]);
    const auto number = [](const nlohmann::json& loss) {
      return loss.is_object() ? loss["mean"].get<double>() : loss.get<double>();
    };
    EXPECT_NEAR(number(off[i]["loss"]), number(on[i]["loss"]), 1e-5) << on[i].dump();
  }
}

TEST(StepGraphsTest, ADivergedTrainingIsFoundOut) {
  const Workplace w;
  Config c = config_for("mlp");
  c.lr = 1e18;
  c.log_every = 1;
  EXPECT_THROW(train(c, "on", w.path() / "run"), Error);
}

TEST(StepGraphsTest, OnACpuOnlyWhoAsksRecords) {
  EXPECT_FALSE(records_steps("auto", kCpu));
  EXPECT_TRUE(records_steps("on", kCpu));
  EXPECT_FALSE(records_steps("off", {Device::kCuda, 0}));
  EXPECT_TRUE(records_steps("auto", {Device::kCuda, 0}));
  EXPECT_THROW(records_steps("yes", kCpu), BadOption);
}

// Covers rows that hand out the gradient in slices, and rows with all kinds of peers.
TEST(StepGraphsTest, SeveralWorkersTrainTheSameBits) {
  const Workplace w;
  const std::string task =
      "timeout 100 $TRAIN --data synthetic:12x12x1,classes=4,train=640,test=64 --image-size 12 --threads 1 "
      "--data-threads 1 --batch-size 8 --steps 12 --log-every 5 --workers 2 ";
  for (const std::string flags :
       {"--model small-cnn --algorithm allreduce --slice-mb 0.01 --clip-norm 1",
        "--model mlp --algorithm local-sgd "
        "--tau 3",
        "--model mlp --algorithm sgp --no-final-average", "--model mlp --algorithm cocod --tau 3"}) {
    nlohmann::json ran[2];
    for (const bool on : {false, true}) {
      const std::string run = on ? "on" : "off";
      ASSERT_EQ(
          w.run("rm -rf " + run + "; " + task + flags + " --cuda-graphs " + run + " --output " + run).status,
          0)
          << w.read(".err");
      ran[on] = nlohmann::json::parse(w.read(run + "/summary.json"));
    }
    EXPECT_EQ(ran[1]["worker_hashes"], ran[0]["worker_hashes"]) << flags;
    const std::string how = ran[1]["environment"]["cuda_graphs"];
    EXPECT_EQ(how.find("replayed at 10 of 12 steps, in "), 0u) << flags << ": " << how;
  }
}

}  // namespace
}  // namespace skein::apps
