// Verdicts on images: which classes are taken for which.
#include "apps/evaluation/verdicts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/files.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

using testing::has;
using testing_programs::Ended;
using testing_programs::expect_fine;
using testing_programs::summary_of;
using testing_programs::Workplace;

const std::string kTrainOnce =
    "$TRAIN --data synthetic:8x8x1,classes=6,train=256,test=90 --model mlp --batch-size 16 --threads 1 "
    "--lr-schedule constant --warmup-epochs 0 --checkpoint-every 1 --keep-checkpoints 9 ";

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
    expect_fine(w.run("rm -rf out; " + kTrainOnce + "--epochs 1 --output out " + workers));
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

TEST(Evaluation, ANameIsCutBetweenTwoCharacters) {
  std::string name;
  for (int i = 0; i < 20; ++i) name += "鳥";
  const std::string table = class_table(tally({{0, 0, 0, 0.5f}}, 1), {name});
  EXPECT_TRUE(has(table, "鳥... ")) << table;
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

}  // namespace
}  // namespace skein::apps
