// train_imagenet as a program: its output, files and exit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base.h"
#include "tests/programs/tiny_training.h"

namespace skein {
namespace {

using testing_programs::Ended;
using testing_programs::expect_has;
using testing_programs::Workplace;
using Json = nlohmann::json;

TEST(Train, LeavesARunThatSaysHowItWentAndHowToGoOn) {
  const Workplace w;
  const Ended e = w.run(std::string(kTiny) + "--epochs 2 --output out");
  ASSERT_EQ(e.status, 0) << e.err;
  for (const char* f :
       {"config.toml", "metrics.jsonl", "summary.json", "report.html", "model.safetensors", "checkpoints"})
    EXPECT_TRUE(w.has(std::string("out/") + f)) << f;
  expect_has(e.out, "top-1 ");
  expect_has(e.out, "images/s");
  expect_has(e.out, "--resume out --epochs 4");
  EXPECT_EQ(e.err, "");
  const Json summary = Json::parse(w.read("out/summary.json"));
  EXPECT_EQ(summary["steps"], 8);
  EXPECT_EQ(summary["config"]["model"], "mlp");
  EXPECT_EQ(summary["config"]["output"], "out");
  EXPECT_EQ(summary["hash"].get<std::string>().size(), 64u);
}

// With a split that makes a run inelastic, for which flags of elastic runs are refused, but not defaults.
TEST(Train, RepeatsARunByItsConfiguration) {
  const Workplace w;
  const Ended first =
      w.run(std::string(kTiny) + "--steps 3 --workers 2 --algorithm local-sgd --split dirichlet:0.5 " +
            "--output out");
  ASSERT_EQ(first.status, 0) << first.err;
  const Ended second = w.run("$TRAIN --config out/config.toml --output again");
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(Json::parse(w.read("again/summary.json"))["hash"],
            Json::parse(w.read("out/summary.json"))["hash"]);
}

TEST(Train, NamesItsDirectoryAfterModelAndDataIfNotTold) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 1").status, 0);
  EXPECT_EQ(w.run("ls -d runs/mlp-synthetic-*/model.safetensors").status, 0);
}

TEST(Train, SaysWhichInstructionSetsItUses) {
  const Workplace w;
  const Ended e = w.run("SKEIN_CPU=avx2 " + std::string(kTiny) + "--steps 1 --output out");
  ASSERT_EQ(e.status, 0) << e.err;
  expect_has(e.out, "instruction sets: avx2 (SKEIN_CPU), oneDNN ");
  const Json summary = Json::parse(w.read("out/summary.json"));
  expect_has(summary["environment"]["backend"].get<std::string>(), "avx2 (SKEIN_CPU), oneDNN ");
  expect_has(w.run("SKEIN_CPU=avx2 " + std::string(kTiny) + "--doctor").out, "; avx2");
}

TEST(Train, LearnsSyntheticImages) {
  const Workplace w;
  const Ended e = w.run(
      "$TRAIN --data synthetic:12x12x1,classes=4,train=512,test=200 --model small-cnn --epochs 3 "
      "--batch-size 32 --output out");
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_GT(Json::parse(w.read("out/summary.json"))["top1"].get<double>(), 80);
}

TEST(Train, EvaluatesSavedWeightsToTheSameScore) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--epochs 1 --output out").status, 0);
  const Ended e = w.run(std::string(kTiny) + "--eval-only --weights out/model.safetensors");
  ASSERT_EQ(e.status, 0) << e.err;
  const Json summary = Json::parse(w.read("out/summary.json"));
  char line[64];
  snprintf(line, sizeof line, "top-1 %.2f %%", summary["top1"].get<double>());
  expect_has(e.out, line);
  EXPECT_FALSE(w.has("runs"));
  expect_has(w.run("$TRAIN --weights out/model.safetensors --print").out, "\nmodel = \"mlp\"");
}

TEST(Train, PrintedConfigurationIsAConfiguration) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--lr 0.25 --no-nesterov --print > one.toml").status, 0);
  ASSERT_EQ(w.run("$TRAIN --config one.toml --print > two.toml").status, 0);
  EXPECT_EQ(w.read("one.toml"), w.read("two.toml"));
  expect_has(w.read("two.toml"), "lr = 0.25");
  expect_has(w.read("two.toml"), "batch-size = 16");
}

TEST(Train, ListsItsTables) {
  const Workplace w;
  const Ended all = w.run("$TRAIN --list");
  for (const char* name : {"algorithms", "models", "topologies", "data", "small-cnn", "fashion-mnist", "sgd"})
    expect_has(all.out, name);
  const Ended models = w.run("$TRAIN --list models");
  expect_has(models.out, "resnet50");
  EXPECT_EQ(models.out.find("fashion-mnist"), std::string::npos);
  EXPECT_EQ(w.run("$TRAIN --list colors").status, 2);
  for (const char* line : {"$TRAIN --version", "$TRAIN --version --list"})
    EXPECT_EQ(w.run(line).out, "train_imagenet " SKEIN_VERSION "\n") << line;
  expect_has(w.run("$TRAIN --help").out, "--batch-size");
}

// A class of one image keeps none for testing.
TEST(Train, SaysThatNoImageIsLeftForTesting) {
  const Workplace w;
  const std::string picture = SKEIN_SOURCE_DIR "/tests/fixtures/pillow/half.jpg";
  const Ended e =
      w.run("for c in a b; do mkdir -p two/$c; cp " + picture +
            " two/$c; done; $TRAIN --data imagefolder:two --model mlp --image-size 16 --batch-size "
            "1 --steps 1 --output out");
  EXPECT_EQ(e.status, 1) << e.out;
  expect_has(e.err, "imagefolder:two: of its 2 images none is left for testing");
  EXPECT_FALSE(w.has("out"));
}

TEST(Train, SaysBatchAndRateAsTheyComeAbout) {
  const Workplace w;
  const Ended e =
      w.run(std::string(kTiny) + "--algorithm diloco --workers 2 --threads 1 --steps 3 --output out");
  ASSERT_EQ(e.status, 0) << e.err;
  expect_has(e.out, "3 steps, 2 an epoch, batch 2 x 16, fp32 on cpu, 1 thread; out");
  expect_has(e.out, "learning rate 0.0125 = 0.1 x 32/256, cosine");
  expect_has(e.out, "warning: the workers never meet: this run has 3 steps and --tau is 100");
  EXPECT_EQ(Json::parse(w.read("out/summary.json"))["config"]["outer-lr"], 0.7);
  expect_has(w.read("out/config.toml"), "\ntau = 100 ");
  const std::string page = w.read("out/report.html");
  expect_has(page, "\"outer-lr\":0.7");
  expect_has(page, "batch 2 x 16 \u00b7 rate 0.0125 = 0.1 x 32/256");
}

TEST(Train, ShowsALossFromTheFirstStepOn) {
  const Workplace w;
  const Ended e = w.run(std::string(kTiny) + "--steps 3 --log-every 3 --output out");
  ASSERT_EQ(e.status, 0) << e.err;
  expect_has(e.out, "step 1/3  loss ");
}

TEST(Train, TakesARunsDirectoryForItsModel) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 2 --output out").status, 0);
  const Ended e = w.run(std::string(kTiny) + "--eval-only --weights out");
  EXPECT_EQ(e.status, 0) << e.err;
  expect_has(e.out, "top-1 ");
  const Ended onnx = w.run("$TRAIN --weights out --export-onnx m.onnx");
  EXPECT_EQ(onnx.status, 0) << onnx.err;
  expect_has(onnx.out, "m.onnx  the model of out/model.safetensors as ONNX");
  const Ended tuned = w.run(
      "$TRAIN --data synthetic:8x8x1,classes=3,train=64,test=30 --batch-size 16 --steps 1 --weights out "
      "--output tuned");
  EXPECT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_EQ(Json::parse(w.read("tuned/summary.json"))["config"]["model"], "mlp");  // as the file says
  const Ended other = w.run("$TRAIN --data synthetic --model resnet20 --weights out --output other");
  EXPECT_EQ(other.status, 2);
  expect_has(other.err, "--model resnet20: out/model.safetensors is of mlp; leave --model out");
  ASSERT_EQ(w.run("mkdir empty").status, 0);
  const Ended none = w.run(std::string(kTiny) + "--eval-only --weights empty");
  EXPECT_EQ(none.status, 2);
  expect_has(none.err, "there is no model.safetensors in it");
}

TEST(Train, ADiskThatFillsUpEndsTheRunAndLeavesNoHalfFile) {
  const Workplace w;
  for (const auto& [more, file] : {std::pair{"--eval-every 0", "out/checkpoints"}, {"", "out/model_best"}}) {
    const Ended e = w.run(text("rm -rf out; ulimit -f 300; ",
                               "$TRAIN --data synthetic:28x28x1,classes=10,train=64,test=10 --model cnn7 ",
                               "--batch-size 32 --epochs 1 --output out ", more));
    EXPECT_EQ(e.status, 1);
    expect_has(e.err, file);
    EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
    EXPECT_EQ(w.run("find out -type f -size +200k | grep .").status, 1) << "a piece was left behind";
  }
}

TEST(Train, ResumedElsewhereLeavesTheFirstRunAsItWas) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 2 --output out").status, 0);
  const std::string before = w.read("out/metrics.jsonl");
  const Ended e = w.run("$TRAIN --resume out --output other --steps 4 --lr 0.05");
  EXPECT_EQ(e.status, 0) << e.err;
  expect_has(e.out, "lr 0.1 -> 0.05");
  EXPECT_EQ(w.read("out/metrics.jsonl"), before);
  EXPECT_EQ(Json::parse(w.read("other/summary.json"))["steps"], 4);
}

TEST(Output, ThatDoesNotFitOnTheDiskIsAFailure) {
  const testing_programs::Workplace w;
  for (const std::string action : {"--list", "--help", "--version", "--print --data synthetic --model mlp"}) {
    const Ended e = w.run("$TRAIN " + action + " > /dev/full");
    EXPECT_EQ(e.status, 1) << action;
    EXPECT_TRUE(e.err.starts_with("train_imagenet: ")) << e.err;
    expect_has(e.err, "No space left on device");
  }
  EXPECT_EQ(w.run("$GOSSIP --workers 2 --rounds 1 --print-schedule > /dev/full").status, 1);
}

}  // namespace
}  // namespace skein
