// A run resumed by another number of workers: if gradients are averaged it is the same training, else it
// has the same mean.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "apps/checkpoint/reshare.h"
#include "apps/model/safetensors.h"
#include "engine/vectors/loss_scale.h"
#include "tests/support/model_files.h"
#include "tests/support/numbers/difference.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;

// Epochs of 8 steps of 24 images, the last smaller.
const char* kTask =
    "timeout 100 $TRAIN --data synthetic:12x12x1,classes=4,train=184,test=16 --image-size 12 --lr 0.05 "
    "--reference-batch 0 --lr-schedule constant --warmup-epochs 0 --augment mirror --threads 1 --eval-every "
    "0 "
    "--transport local --checkpoint-every 0 ";

class Reshare : public ::testing::Test {
 protected:
  void train(const std::string& flags) {
    const Ended e = place_.run(kTask + flags);
    ASSERT_EQ(e.status, 0) << flags << e.err;
  }
  Ended resume(const std::string& flags) { return place_.run("timeout 100 $TRAIN --resume " + flags); }
  json summary(const std::string& run) { return json::parse(place_.read(run + "/summary.json")); }

  // A field of all workers of the only checkpoint of a run.
  std::vector<std::vector<float>> field(const std::string& run, const std::string& name) {
    std::vector<std::vector<float>> all;
    for (const auto& checkpoint : std::filesystem::directory_iterator(place_.path() / run / "checkpoints"))
      for (int r = 0;; ++r) {
        const auto path = checkpoint.path() / ("rank-000" + std::to_string(r) + ".safetensors");
        if (!std::filesystem::exists(path)) break;
        const auto file = apps::read_safetensors(path.string());
        if (const Tensor* t = file.find(name))
          all.emplace_back(t->data<float>(), t->data<float>() + t->size());
      }
    return all;
  }
  std::vector<float> mean(const std::string& run, const std::string& name) {
    const auto all = field(run, name);
    std::vector<float> m(all.empty() ? 0 : all[0].size());
    for (size_t i = 0; i < m.size(); ++i) {
      double sum = 0;
      for (const auto& x : all) sum += x[i];
      m[i] = float(sum / double(all.size()));
    }
    return m;
  }
  static double difference(const std::vector<float>& a, const std::vector<float>& b) {
    return a.empty() ? HUGE_VAL : differences::largest_difference(a, b);
  }
  // Of each step, over all workers.
  std::vector<double> losses(const std::string& run) {
    std::vector<double> all;
    std::istringstream lines(place_.read(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      if (const json j = json::parse(line); j["event"] == "step") all.push_back(j["loss"]);
    return all;
  }
  double models_differ(const std::string& a, const std::string& b) {
    return testing_programs::models_differ(place_.path() / a, place_.path() / b);
  }
  testing_programs::Workplace place_;
};

// Three different numbers of workers in one training, changed within epochs.
TEST_F(Reshare, AveragedGradientsGoOnAsIfNothingHadHappened) {
  const std::string flags = "--model mlp --algorithm allreduce --ema 0.9 ";
  train(flags + "--workers 2 --batch-size 12 --steps 20 --output whole");
  train(flags + "--workers 2 --batch-size 12 --steps 5 --output part");
  const Ended three = resume("part --workers 3 --steps 11");
  ASSERT_EQ(three.status, 0) << three.err;
  EXPECT_NE(three.out.find("workers 2 -> 3"), std::string::npos) << three.out;
  EXPECT_NE(three.out.find("batch-size 12 -> 8"), std::string::npos) << three.out;
  ASSERT_EQ(resume("part --workers 1 --steps 20").status, 0) << place_.read(".err");
  EXPECT_LT(models_differ("whole", "part"), 1e-5);
  EXPECT_NEAR(summary("part")["ema_loss"], summary("whole")["ema_loss"], 1e-4);
  EXPECT_EQ(summary("part")["workers"], 1);
}

// Shares of a step differ by one image, and in the last step of an epoch there are 4 images for 5 workers.
TEST_F(Reshare, AGlobalBatchThatDoesNotDivideGivesTheSameSteps) {
  const std::string flags = "--model mlp --algorithm allreduce --log-every 1 ";
  train(flags + "--workers 1 --batch-size 12 --steps 36 --output whole");
  const std::vector<double> whole = losses("whole");
  ASSERT_EQ(whole.size(), 36u);
  for (const auto& [workers, hierarchy] : {std::pair{2, ""}, {3, ""}, {5, ""}, {5, "--hierarchy 2 "}}) {
    place_.run("rm -rf part");
    train(flags + "--workers 1 --batch-size 12 --steps 1 --output part");
    const Ended e = resume(text("part --workers ", workers, " --steps 36 ", hierarchy));
    ASSERT_EQ(e.status, 0) << e.err;
    const std::vector<double> part = losses("part");
    ASSERT_EQ(part.size(), whole.size()) << workers;
    for (size_t k = 0; k < whole.size(); ++k)
      EXPECT_NEAR(part[k], whole[k], 2e-5) << workers << " step " << k;
    EXPECT_LT(models_differ("whole", "part"), 1e-5) << workers;
  }
}

TEST_F(Reshare, FourWorkersBecomeThreeAndSixteenAgain) {
  train("--model mlp --algorithm allreduce --workers 4 --batch-size 4 --steps 5 --output run");
  const Ended three = resume("run --workers 3 --steps 8");
  ASSERT_EQ(three.status, 0) << three.err;
  EXPECT_NE(three.out.find("batch 16 over 3 workers: 6, 5, 5"), std::string::npos) << three.out;
  EXPECT_NE(three.out.find("batch-size 4 -> 6"), std::string::npos) << three.out;
  EXPECT_EQ(summary("run")["workers"], 3);
  EXPECT_EQ(summary("run")["global_batch"], 16);
  EXPECT_EQ(summary("run")["config"]["batch-size"], 6);
  EXPECT_NE(place_.read("run/report.html").find("batch 16 over 3 workers: 6, 5, 5"), std::string::npos);
  const Ended same = resume("run --steps 10");
  ASSERT_EQ(same.status, 0) << same.err;
  EXPECT_NE(same.out.find("batch 16 over 3 workers: 6, 5, 5"), std::string::npos) << same.out;
  const Ended most = resume("run --workers 16 --steps 12");
  ASSERT_EQ(most.status, 0) << most.err;
  EXPECT_NE(most.out.find("batch 16 x 1"), std::string::npos) << most.out;
  EXPECT_EQ(summary("run")["steps"], 12);
}

TEST_F(Reshare, TheMeansOfModelsAndMomentaAreKept) {
  // Columns of each matrix sum to 1, but rows do not, so push-sum's weights differ from 1.
  place_.write("graph.json",
               R"({"n": 4, "rounds": [{"edges": [[0,0,0.5],[0,1,0.5],[1,1,0.5],[1,2,0.5],[2,2,0.9],
                                 [2,0,0.1],[3,3,0.25],[3,0,0.75]]}]})");
  const char* rows[] = {
      "sgp --topology file:graph.json",  "d-psgd", "local-sgd --tau 3", "cocod --tau 3", "easgd --tau 2",
      "lsgd --groups 2 --prox-local 0.1"};
  for (const std::string row : rows) {
    place_.run("rm -rf run other");
    train("--model mlp --workers 4 --batch-size 6 --steps 4 --output run --algorithm " + row);
    const bool pushes = row.starts_with("sgp");
    // No step is left to train, so the run writes what it loaded.
    const Ended e = resume("run --workers 2 --steps 4 --output other" +
                           std::string(pushes ? " --topology exponential" : ""));
    ASSERT_EQ(e.status, 0) << row << e.err;
    EXPECT_LT(difference(mean("run", pushes ? "strategy.x" : "x"), mean("other", "x")), 1e-6) << row;
    EXPECT_LT(difference(mean("run", "rule.v"), mean("other", "rule.v")), 1e-6) << row;
    const auto x = field("other", "x");
    ASSERT_EQ(x.size(), 2u) << row;
    EXPECT_EQ(x[0], x[1]) << row;
    if (pushes) { EXPECT_GT(difference(mean("run", "x"), mean("run", "strategy.x")), 1e-5); }
  }
}

TEST_F(Reshare, WhatIsOnItsWayIsPartOfTheMean) {
  train("--model mlp --workers 4 --batch-size 6 --steps 7 --output run --algorithm osgp --staleness 1");
  ASSERT_EQ(resume("run --workers 3 --steps 7 --output other").status, 0) << place_.read(".err");
  const auto all = [&](const std::string& run, double workers) {
    std::vector<double> sum;
    std::vector<std::string> names = {"strategy.x"};
    for (int i = 0; i < 16; ++i) names.push_back("strategy.flight" + std::to_string(i) + ".x");
    for (const std::string& name : names)
      for (const auto& x : field(run, name)) {
        sum.resize(x.size());
        for (size_t i = 0; i < x.size(); ++i) sum[i] += x[i] / workers;
      }
    return std::vector<float>(sum.begin(), sum.end());
  };
  EXPECT_LT(difference(all("run", 4), all("other", 3)), 1e-6);
  EXPECT_LT(difference(mean("run", "rule.v"), mean("other", "rule.v")), 1e-6);
  EXPECT_EQ(resume("other --steps 12").status, 0) << place_.read(".err");
}

TEST_F(Reshare, AnchorsAndCentersAreKept) {
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"slowmo --tau 2", "strategy.z", "strategy.z"}, {"slowmo --tau 2", "strategy.m", "strategy.m"},
      {"easgd --tau 2", "strategy.z", "strategy.z"},  {"downpour --tau 2", "strategy.center.theta", "x"},
      {"gem", "strategy.center.theta", "strategy.s"},
  };
  for (const auto& [row, before, after] : rows) {
    place_.run("rm -rf run other");
    train(std::string("--model mlp --workers 3 --batch-size 8 --steps 5 --output run --algorithm ") + row);
    ASSERT_EQ(resume("run --workers 2 --steps 5 --output other").status, 0) << row << place_.read(".err");
    const auto then = field("run", before), now = field("other", after);
    ASSERT_FALSE(then.empty()) << row;
    ASSERT_EQ(now.size(), 2u) << row;
    for (const auto& n : now) EXPECT_EQ(n, then[0]) << row;
  }
}

TEST_F(Reshare, WhatACenterKeepsGoesWithIt) {
  const std::string kept = "strategy.center.kept";
  train(
      "--model mlp --workers 3 --batch-size 8 --steps 5 --output run --algorithm downpour --tau 2 "
      "--server-rule delayed-nesterov");
  ASSERT_EQ(resume("run --workers 2 --steps 5 --output other").status, 0) << place_.read(".err");
  ASSERT_EQ(field("run", kept).size(), 1u);
  EXPECT_EQ(field("other", kept), field("run", kept));
}

TEST_F(Reshare, EveryOtherRowGoesOn) {
  for (const std::string row :
       {"overlap-local-sgd --tau 2", "streaming-diloco --tau 4 --fragments 2 --delay 1",
        "qsr --tau 2 --qsr-c 0", "ad-psgd", "easgd-async --tau 2", "osgp --bn-policy mix"}) {
    place_.run("rm -rf run");
    train("--model small-cnn --workers 4 --batch-size 6 --steps 5 --output run --algorithm " + row);
    ASSERT_EQ(resume("run --workers 2 --steps 8").status, 0) << row << place_.read(".err");
    if (row.starts_with("easgd-async") || row.starts_with("streaming")) {  // shares of 5 and 4 images
      EXPECT_EQ(resume("run --workers 5 --steps 10").status, 0) << row << place_.read(".err");
    }
    // A single worker keeps less state.
    if (!row.starts_with("ad-psgd") && !row.starts_with("osgp")) continue;
    EXPECT_EQ(resume("run --workers 1 --steps 10").status, 0) << row << place_.read(".err");
    EXPECT_EQ(resume("run --workers 2 --steps 12").status, 0) << row << place_.read(".err");
  }
}

// A single worker needs no codec: the workers that follow have no residual, and its model in common.
TEST_F(Reshare, ACodedRunPassesThroughASingleWorker) {
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"allreduce --wire int8", "strategy.residual", ""},
      {"local-sgd --tau 3 --wire int4", "strategy.residual", "strategy.common"},
      {"post-local --switch-step 2 --tau 3 --wire int8", "strategy.together.residual",
       "strategy.apart.common"},
      {"slowmo --tau 3 --wire topk:0.1", "strategy.residual", ""},
      {"cocod --tau 3 --wire int8", "strategy.flight.residual", "strategy.flight.common"},
  };
  for (const auto& [row, owed, common] : rows) {
    place_.run("rm -rf run four");
    train(std::string("--model mlp --workers 4 --batch-size 6 --steps 4 --output run --keep-checkpoints 1 ") +
          "--algorithm " + row);
    ASSERT_EQ(resume("run --workers 1 --steps 8").status, 0) << row << place_.read(".err");
    EXPECT_TRUE(field("run", owed).empty()) << row;
    // No step is left to train, so the run writes what it loaded.
    ASSERT_EQ(resume("run --workers 4 --steps 8 --output four").status, 0) << row << place_.read(".err");
    const auto residuals = field("four", owed), x = field("four", "x");
    ASSERT_EQ(residuals.size(), 4u) << row;
    for (const auto& e : residuals) EXPECT_EQ(e, std::vector<float>(e.size(), 0)) << row;
    if (*common) { EXPECT_EQ(field("four", common), x) << row; }
    EXPECT_EQ(resume("four --steps 12").status, 0) << row << place_.read(".err");
  }
}

// Workers with different scales get the smallest, because what overflowed on one may overflow on those
// that get its images.
TEST_F(Reshare, TheLossScaleBecomesTheSmallestThereWas) {
  struct Past {
    int overflows, good;
  };
  const std::vector<Past> pasts = {{0, 5}, {3, 9}, {1, 2}};
  const auto of = [](LossScale& s) {
    return [&s](Archive& a) {
      Under scale(a, "loss_scale.");
      s.visit(scale);
    };
  };
  const auto judge = [](LossScale& s, float value) {
    const Tensor g({3});
    fill(g, value);
    s.judge(g);
    return g.data<float>()[0];
  };
  apps::Checkpoints files((place_.path() / "scales").string());
  files.begin(7);
  for (size_t r = 0; r < pasts.size(); ++r) {
    LossScale s(kCpu, true);
    for (int i = 0; i < pasts[r].overflows; ++i) judge(s, INFINITY);
    for (int i = 0; i < pasts[r].good; ++i) judge(s, 1);
    files.write(7, int(r), of(s));
  }
  apps::Identity run;
  run.world = int(pasts.size());
  const std::string checkpoint = files.commit(7, run);
  for (const int world : {1, 2, 4})
    for (int r = 0; r < world; ++r) {
      LossScale s(kCpu, true);
      run.world = world;
      apps::load_reshared(checkpoint, r, run, of(s));
      const LossScale::State now = s.read();
      EXPECT_EQ(now.scale, LossScale::kStart / 8) << world;
      EXPECT_EQ(now.good, 2) << "it grows no sooner than with any of them";
      EXPECT_FLOAT_EQ(float(now.skipped), 4.f / 3) << "the mean, as it is reported";
      EXPECT_EQ(judge(s, LossScale::kStart), 8) << "gradients are divided by the scale that was loaded";
    }
}

// Good steps continue to count, so that the scale grows when it would have grown; nothing overflows here.
TEST_F(Reshare, TheLossScaleCountsItsGoodStepsOn) {
  const auto expect_steps = [&](float steps, size_t workers) {
    const auto scales = field("run", "loss_scale.scale");
    EXPECT_EQ(scales, std::vector<std::vector<float>>(workers, {LossScale::kStart, steps}));
    EXPECT_EQ(field("run", "loss_scale.skipped"), std::vector<std::vector<float>>(workers, {0}));
  };
  train(
      "--model small-cnn --precision fp16 --algorithm allreduce --workers 2 --batch-size 12 --steps 5 "
      "--keep-checkpoints 1 --output run");
  expect_steps(5, 2);
  for (const int workers : {3, 1}) {
    const int steps = 8 + 3 - workers;
    const std::string more = text("run --workers ", workers, " --steps ", steps);
    ASSERT_EQ(resume(more).status, 0) << more << place_.read(".err");
    expect_steps(float(steps), size_t(workers));
  }
}

TEST_F(Reshare, TheEnvironmentMaySayTheNumber) {
  train("--model mlp --algorithm local-sgd --workers 2 --batch-size 12 --steps 3 --output run");
  const Ended e = place_.run(
      "RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 timeout 100 $TRAIN --resume run --steps 6 "
      "--transport auto");
  EXPECT_EQ(e.status, 0) << e.err;
  EXPECT_EQ(summary("run")["workers"], 1);
  EXPECT_EQ(summary("run")["config"]["batch-size"], 24);
}

TEST(SameWorkers, KeepTheFlagsOfTheirRun) {
  apps::Config c;
  c.batch_size = 8;
  apps::Manifest m;
  m.identity.world = 3, m.identity.global_batch = 24;
  apps::keep_global_batch(c, m, 3);
  EXPECT_EQ(c.global_batch, 0);
  apps::keep_global_batch(c, m, 2);
  EXPECT_EQ(c.global_batch, 24);
}

TEST_F(Reshare, WhatCannotBeIsRefusedInOneMessage) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"local-sgd", "--workers 25",
       "24 images a step over all of them, too few for 25; --workers may be at most 24"},
      {"local-sgd", "--workers 4 --batch-size 7", "batch-size"},
      {"sgp --split dirichlet:10", "--workers 4", "has its own images"},
  };
  for (const auto& [row, flags, message] : cases) {
    place_.run("rm -rf run");
    train(std::string("--model mlp --workers 2 --batch-size 12 --steps 2 --output run --algorithm ") + row);
    const Ended e = resume(std::string("run --steps 4 ") + flags);
    EXPECT_EQ(e.status, 2) << row << e.err;
    EXPECT_NE(e.err.find(message), std::string::npos) << row << '\n' << e.err;
    EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << row << '\n' << e.err;
  }
}

}  // namespace
}  // namespace skein
