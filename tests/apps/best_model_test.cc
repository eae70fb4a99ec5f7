// What a run keeps of its evaluations: the best model, early stopping, the confusion of classes, and whether
// a resumed run has the same images.
#include "apps/evaluation/best_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "apps/checkpoint/data_index.h"
#include "apps/evaluation/verdicts.h"
#include "nn/models.h"
#include "tests/support/files.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

using testing::has;
using testing::ScratchDir;
using testing::spill;
using testing_programs::Ended;
using testing_programs::Workplace;

void expect_fine(const Ended& e) { ASSERT_EQ(e.status, 0) << e.out << e.err; }
Json summary_of(const Workplace& w, const std::string& run) {
  return Json::parse(w.read(run + "/summary.json"));
}
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

// Every image is in the matrix once, whichever worker scored it.
void expect_consistent(const Json& j, int64_t images) {
  int64_t all = 0, correct = 0;
  for (size_t c = 0; c < j["classes"].size(); ++c) {
    int64_t row = 0;
    for (const Json& n : j["confusion"][c]) row += n.get<int64_t>();
    EXPECT_EQ(j["images_by_class"][c], row);
    EXPECT_EQ(j["correct_by_class"][c], j["confusion"][c][c]);
    all += row, correct += j["correct_by_class"][c].get<int64_t>();
  }
  int64_t wrong = 0;
  for (const Json& c : j["confusions"]) {
    EXPECT_EQ(c[2], j["confusion"][c[0].get<size_t>()][c[1].get<size_t>()]);
    wrong += c[2].get<int64_t>();
  }
  EXPECT_EQ(all, images);
  EXPECT_EQ(wrong, all - correct);
  EXPECT_NEAR(j["top1"].get<double>(), 100 * double(correct) / double(all), 1e-9);
}

TEST(Evaluation, SaysWhichClassesAreTakenForWhich) {
  const Workplace w;
  for (const std::string workers : {"", "--workers 3 --algorithm allreduce"}) {
    expect_fine(w.run("rm -rf out; " + kTrain + "--epochs 1 --output out " + workers));
    const Json j = Json::parse(w.read("out/evaluation.json"));
    expect_consistent(j, 90);
    EXPECT_EQ(j["top1"], summary_of(w, "out")["top1"]);
    EXPECT_FALSE(j["mistakes"].empty());
    double before = 1;
    for (const Json& m : j["mistakes"]) {
      EXPECT_NE(m["truth"], m["guess"]);
      EXPECT_LE(m["probability"], before);
      before = m["probability"];
      EXPECT_TRUE(m["picture"].get<std::string>().starts_with("data:image/png;base64,iVBOR"));
    }
  }
  const std::string eval =
      "$TRAIN --eval-only --weights out/model.safetensors --data "
      "synthetic:8x8x1,classes=6,train=256,test=90 ";
  const Json j = Json::parse(w.run(eval + "--json").out);
  expect_consistent(j, 90);
  EXPECT_EQ(j["model"], "mlp");
  const Ended e = w.run(eval);
  expect_fine(e);
  EXPECT_TRUE(e.out.starts_with("mlp of out/model.safetensors on synthetic:")) << e.out;
  EXPECT_TRUE(has(e.out, "\nclass  images    top-1  most often taken for\n")) << e.out;
  EXPECT_EQ(std::count(e.out.begin(), e.out.end(), '\n'), 2 + 1 + 1 + 6) << e.out;
  EXPECT_EQ(w.run("$TRAIN --json --data synthetic").status, 2);
}

TEST(Evaluation, TheTableOfManyClassesHasThoseWithTheLowestAccuracy) {
  std::vector<Verdict> verdicts;
  std::vector<std::string> names;
  for (int32_t c = 0; c < 100; ++c) {
    names.push_back(text("class-", c));
    for (int i = 0; i < 10; ++i) verdicts.push_back({10 * c + i, c, i < c / 10 ? c : (c + 1) % 100, 0.5f});
  }
  const std::string table = class_table(tally(verdicts, 100), names, 3);
  EXPECT_TRUE(has(table, "class-0      10   0.00 %  class-1 (10)\n")) << table;
  EXPECT_TRUE(has(table, "the 3 classes with the lowest accuracy, of 100")) << table;
  EXPECT_FALSE(has(table, "\nclass-3 ")) << table;
  EXPECT_FALSE(to_json(tally(verdicts, 100), names).contains("confusion"));
}

TEST(Evaluation, OfEqualLogitsTheLowerClassIsTheGuess) {
  std::vector<Verdict> v;
  judge(Tensor::of<float>({3, 3}, {1, 1, 0, 0, 2, 1, 5, 5, 5}), Tensor::of<int32_t>({3}, {1, 1, -1}),
        {7, 8, 9}, v);
  ASSERT_EQ(v.size(), 2u);
  EXPECT_EQ(v[0].index, 7);
  EXPECT_EQ(v[0].guess, 0);
  EXPECT_EQ(v[1].guess, 1);
  EXPECT_NEAR(v[1].probability, 1 / (1 + std::exp(-1.0) + std::exp(-2.0)), 1e-6);
}

TEST(Resume, SaysThatTheImagesHaveChanged) {
  const Workplace w;
  expect_fine(w.run(SKEIN_BINARY_DIR "/make_image_folder d --per-class 12"));
  const std::string train =
      "$TRAIN --model mlp --image-size 12 --batch-size 8 --epochs 1 --data imagefolder:";
  expect_fine(w.run(train + "d --output split && " + train + "d/train --output flat"));
  const Ended same = w.run("mv d e && $TRAIN --resume split --data imagefolder:e --epochs 2");
  expect_fine(same);
  EXPECT_FALSE(has(same.out, "images 120 ->") || has(same.out, "not the same ones")) << same.out;
  expect_fine(
      w.run("mv e d; cp $(ls d/train/Bag/*.jpg | head -1) d/train/Bag/new.jpg; "
            "mv $(ls d/val/Coat/* | head -1) d/val/Bag/new.jpg"));
  const Ended more = w.run("$TRAIN --resume split --data imagefolder:d --epochs 3");
  expect_fine(more);
  EXPECT_TRUE(has(more.out, "changed since: training images 120 -> 121\n")) << more.out;
  EXPECT_TRUE(has(more.out, "changed since: test images, 20 as before, but not the same ones\n")) << more.out;
  EXPECT_FALSE(has(more.out, "the tenth kept for testing")) << more.out;
  const Ended flat = w.run("$TRAIN --resume flat --epochs 2");
  expect_fine(flat);
  EXPECT_TRUE(has(flat.out, "changed since: training images 110 -> 111\n")) << flat.out;
  EXPECT_TRUE(has(flat.out, "the tenth kept for testing is chosen among all files")) << flat.out;
}

TEST(Resume, OfACheckpointThatDoesNotSayWhichImagesItHadIsSilent) {
  const data::Split none;
  EXPECT_TRUE(changes_since({}, {{3, "a"}, {4, "b"}}, none).empty());
}

}  // namespace
}  // namespace skein::apps
