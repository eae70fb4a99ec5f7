// Accumulation, clipping, moving averages, blending: what each promises, and that resuming stays exact.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/evaluation/ema.h"
#include "apps/model/safetensors.h"
#include "tests/support/program.h"
#include "tests/support/trainee.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;

const char* kTask =
    "timeout 100 $TRAIN --data synthetic:12x12x1,classes=4,train=92,test=32 --image-size 12 "
    "--reference-batch 0 --lr-schedule constant --warmup-epochs 0 --augment none --threads 1 "
    "--transport local --checkpoint-every 0 ";

class Practice : public ::testing::Test {
 protected:
  void train(const std::string& flags) {
    std::string line = kTask + flags;
    for (const std::string usual : {"--lr 0.05", "--eval-every 0"})
      if (flags.find(usual.substr(0, usual.find(' ') + 1)) == std::string::npos) line += ' ' + usual;
    const Ended e = place_.run(line);
    ASSERT_EQ(e.status, 0) << flags << e.err;
  }
  json summary(const std::string& run) { return json::parse(place_.read(run + "/summary.json")); }
  apps::TensorFile model(const std::string& run, const std::string& file = "model.safetensors") {
    return apps::read_safetensors((place_.path() / run / file).string());
  }
  static double distance(const apps::TensorFile& a, const apps::TensorFile& b) {
    double sum = 0;
    for (const auto& [name, t] : a.tensors)
      for (int64_t i = 0; t.dtype() == kF32 && i < t.size(); ++i) {
        const double off = double(t.data<float>()[i]) - b.find(name)->data<float>()[i];
        sum += off * off;
      }
    return std::sqrt(sum);
  }
  testing_programs::Workplace place_;
};

// Three epochs of six steps, the last of each smaller: passes of unequal size.
TEST_F(Practice, AccumulatedPassesMakeTheStepOfTheWholeBatch) {
  const std::string flags = "--model mlp --steps 18 --label-smoothing 0.1 --mixup 0.4 ";
  train(flags + "--batch-size 16 --output whole");
  train(flags + "--batch-size 16 --accumulate 3 --output cut");
  EXPECT_LT(distance(model("whole"), model("cut")), 1e-5);
  EXPECT_NE(summary("whole")["hash"], summary("cut")["hash"]);
  const std::string two = flags + "--algorithm allreduce --workers 2 --batch-size 8 --slice-mb 0.01 ";
  train(two + "--output pair");
  train(two + "--accumulate 5 --output pair_cut");
  EXPECT_LT(distance(model("pair"), model("pair_cut")), 1e-5);
}

TEST_F(Practice, AClippedStepHasTheLengthAskedFor) {
  const std::string flags =
      "--model mlp --steps 1 --batch-size 16 --momentum 0 --weight-decay 0 --no-nesterov --lr 1 ";
  train(flags + "--clip-norm 0.01 --output a");
  train(flags + "--clip-norm 0.03 --output b");
  EXPECT_NEAR(distance(model("a"), model("b")), 0.02, 1e-5);
}

// Clipped one by one, the gradients of four workers would have another sum.
TEST_F(Practice, ItIsTheAveragedGradientThatIsClipped) {
  const std::string flags = "--model mlp --algorithm allreduce --steps 12 --lr 0.5 --clip-norm 0.2 ";
  train(flags + "--workers 1 --batch-size 32 --output one");
  train(flags + "--workers 4 --batch-size 8 --output four");
  train(flags + "--workers 4 --batch-size 8 --hierarchy 2 --output levels");
  train("--model mlp --algorithm allreduce --steps 12 --lr 0.5 --workers 1 --batch-size 32 --output free");
  EXPECT_LT(distance(model("one"), model("four")), 1e-5);
  EXPECT_LT(distance(model("one"), model("levels")), 1e-5);
  EXPECT_GT(distance(model("one"), model("free")), 0.1);
}

TEST_F(Practice, LocalRowsClipTheirOwnGradient) {
  const std::string flags =
      "--model mlp --algorithm local-sgd --tau 1 --workers 2 --batch-size 16 --steps 1 --momentum 0 "
      "--no-nesterov "
      "--weight-decay 0 --lr 1 ";
  train(flags + "--clip-norm 0.01 --output a");
  train(flags + "--clip-norm 0.03 --output b");
  EXPECT_LT(distance(model("a"), model("b")), 0.0199);  // the mean of two directions is shorter than they are
  EXPECT_GT(distance(model("a"), model("b")), 0.001);
}

// Everything at once: where the run was cut must not show.
TEST_F(Practice, ResumesExactly) {
  const std::string flags =
      "--batch-size 16 --accumulate 2 --clip-norm 0.5 --mixup 0.2 --cutmix 1 --ema 0.9 --label-smoothing "
      "0.1 ";
  for (const std::string& all :
       {flags + "--model small-cnn ", flags + "--model mlp --algorithm sgp --workers 2 "}) {
    place_.run("rm -rf whole part");
    train(all + "--steps 9 --output whole");
    train(all + "--steps 4 --output part");
    ASSERT_EQ(place_.run("timeout 100 $TRAIN --resume part --steps 9").status, 0) << place_.read(".err");
    EXPECT_EQ(summary("part")["hash"], summary("whole")["hash"]);
    EXPECT_EQ(summary("part")["ema_hash"], summary("whole")["ema_hash"]);
    EXPECT_EQ(summary("part")["ema_top1"], summary("whole")["ema_top1"]);
    EXPECT_NE(summary("whole")["ema_hash"], summary("whole")["hash"]);
  }
}

TEST_F(Practice, TheMovingAverageIsScoredAndSavedBesideTheModel) {
  train("--model small-cnn --batch-size 16 --epochs 2 --eval-every 1 --ema 0.99 --output run");
  const json s = summary("run");
  EXPECT_TRUE(s.contains("ema_top1")) << s;
  const Ended e = place_.run(
      "timeout 100 $TRAIN --data synthetic:12x12x1,classes=4,train=92,test=32 --model small-cnn --eval-only "
      "--threads 1 --weights run/model_ema.safetensors");
  char said[64];
  std::snprintf(said, sizeof said, "top-1 %.2f %%", s["ema_top1"].get<double>());
  EXPECT_NE(e.out.find(said), std::string::npos) << e.out << e.err << s;
  EXPECT_NE(place_.read("run/metrics.jsonl").find("\"ema_top1\""), std::string::npos);
}

TEST_F(Practice, ManyWorkersHaveTheAverageOfOne) {
  const std::string flags = "--model mlp --algorithm allreduce --steps 10 --ema 0.8 ";
  train(flags + "--workers 1 --batch-size 16 --output one");
  train(flags + "--workers 2 --batch-size 8 --output two");
  EXPECT_LT(distance(model("one", "model_ema.safetensors"), model("two", "model_ema.safetensors")), 1e-5);
}

}  // namespace
}  // namespace skein
