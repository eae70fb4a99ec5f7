// What a run keeps of its evaluations: the best model, and early stopping.
#include "apps/evaluation/best_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/files.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

using testing::has;
using testing::ScratchDir;
using testing::spill;
using testing_programs::Ended;
using testing_programs::expect_fine;
using testing_programs::summary_of;
using testing_programs::Workplace;

std::vector<Json> events_of(const Workplace& w, const std::string& run, const std::string& kind) {
  std::istringstream in(w.read(run + "/metrics.jsonl"));
  std::vector<Json> found;
  for (std::string line; std::getline(in, line);)
    if (Json j = Json::parse(line); j["event"] == kind) found.push_back(std::move(j));
  return found;
}

const std::string kTrain =
    "$TRAIN --data synthetic:8x8x1,classes=6,train=256,test=90 --model mlp --batch-size 16 --threads 1 "
    "--lr-schedule constant --warmup-epochs 0 --checkpoint-every 1 --keep-checkpoints 9 ";

Score score(double top1, double loss) { return {.top1 = top1, .top5 = {}, .loss = loss, .images = 5}; }
ModelInfo of_step(int64_t step) { return {.model = "mlp", .classes = {}, .steps = step, .more = {}}; }

TEST(BestModel, IsReplacedByABetterEvaluationAlone) {
  const ScratchDir dir;
  const auto model = nn::make_model("mlp", {4, 4, 1, 2});
  BestModel best;
  best.begin(dir.path());
  EXPECT_TRUE(best.is_better(score(0, 9)));
  best.keep(score(50, 1), 1, false, *model, of_step(10));
  EXPECT_FALSE(best.is_better(score(50, 1)));
  EXPECT_FALSE(best.is_better(score(49, 0.1)));
  EXPECT_TRUE(best.is_better(score(50, 0.9)));
  EXPECT_TRUE(best.is_better(score(51, 2)));
  best.begin(dir.path());  // a new run in this directory
  EXPECT_FALSE(best.found());
  EXPECT_FALSE(std::filesystem::exists(dir / BestModel::kFile));
}

TEST(BestModel, OfAnEarlierRunCountsUnlessItIsOfALaterStepOrDamaged) {
  const ScratchDir first, second;
  const auto model = nn::make_model("mlp", {4, 4, 1, 2});
  BestModel before;
  before.begin(first.path());
  before.keep(score(50.5, 1.25), 2.5, true, *model, of_step(10));
  BestModel after;
  after.resume(first.path(), first.path(), 10);
  ASSERT_TRUE(after.found());
  EXPECT_EQ(to_json(*after.found()), to_json(*before.found()));
  after.resume(first.path(), first.path(), 9);  // of an abandoned course
  EXPECT_FALSE(after.found());
  after.resume(second.path(), first.path(), 12);
  ASSERT_TRUE(after.found());
  EXPECT_EQ(testing::slurp(second / BestModel::kFile), testing::slurp(first / BestModel::kFile));
  spill(first / BestModel::kFile, "damaged");
  after.resume(first.path(), first.path(), 12);
  EXPECT_FALSE(after.found());
}

TEST(BestModel, IsThatOfTheBestEvaluationAndSurvivesAResumeToTheByte) {
  const Workplace w;
  for (const std::string more : {"", "--ema 0.9 ", "--workers 2 --algorithm local-sgd "}) {
    const std::string flags = kTrain + "--lr 2 --seed 3 " + more;
    expect_fine(w.run("rm -rf whole half; " + flags + "--epochs 6 --output whole"));
    expect_fine(w.run(flags + "--epochs 3 --output half && $TRAIN --resume half --epochs 6"));
    const Json best = summary_of(w, "whole")["best"];
    double highest = -1;
    for (const Json& e : events_of(w, "whole", "eval"))
      highest = std::max({highest, e["top1"].get<double>(), e.value("ema_top1", -1.0)});
    EXPECT_EQ(best["top1"], highest) << more;
    EXPECT_EQ(summary_of(w, "half")["best"], best) << more;
    EXPECT_EQ(w.read("half/model_best.safetensors"), w.read("whole/model_best.safetensors")) << more;
    const Ended e = w.run(
        "$TRAIN --eval-only --json --weights whole/model_best.safetensors "
        "--data synthetic:8x8x1,classes=6,train=256,test=90 --seed 3");
    expect_fine(e);
    EXPECT_EQ(Json::parse(e.out)["top1"], highest) << more;
  }
}

TEST(Patience, EndsARunWhoseEvaluationsGetNoBetter) {
  const Workplace w;
  for (const std::string more :
       {"", "--workers 2 --algorithm allreduce", "--workers 2 --algorithm ad-psgd"}) {
    const Ended e = w.run("rm -rf out; " + kTrain + "--lr 0 --epochs 9 --patience 2 --output out " + more);
    expect_fine(e);
    EXPECT_TRUE(has(e.out, "in --patience 2: training ends here")) << e.out;
    EXPECT_TRUE(has(e.out, "--resume out --patience 0")) << e.out;
    EXPECT_EQ(events_of(w, "out", "eval").size(), 3u) << more;  // the first is the best
    EXPECT_EQ(summary_of(w, "out")["interrupted"], false);
    EXPECT_TRUE(w.has("out/model.safetensors"));
  }
}

TEST(TopFive, IsLeftOutOfFiveClassesOrFewer) {
  const Workplace w;
  for (const bool six : {false, true}) {
    const Ended e = w.run(text("rm -rf out; $TRAIN --data synthetic:8x8x1,classes=", six ? 6 : 5,
                               ",train=64,test=20 --model mlp --epochs 1 --output out"));
    expect_fine(e);
    EXPECT_EQ(has(e.out, "top-5"), six) << e.out;
    EXPECT_EQ(summary_of(w, "out").contains("top5"), six);
    EXPECT_EQ(events_of(w, "out", "eval").at(0).contains("top5"), six);
  }
}

}  // namespace
}  // namespace skein::apps
