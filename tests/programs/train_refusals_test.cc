// What train_imagenet refuses: with one clear message, the right exit code, and nothing half written.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/programs/tiny_training.h"

namespace skein {
namespace {

using testing_programs::Ended;
using testing_programs::expect_has;
using testing_programs::Workplace;

// A case: the command line, the exit code, and what the one message must say.
struct Refusal {
  const char* name;
  std::string line;
  int status;
  std::vector<std::string> says;
};

class Refuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refuses, WithOneClearMessageAndNothingHalfWritten) {
  const Refusal& c = GetParam();
  const Workplace w;
  write_idx(w, "good", 40, 10);
  write_idx(w, "empty", 0, 10);
  write_idx(w, "label", 40, 10, 77);
  write_idx(w, "short", 40, 10);
  w.write("short/train-images-idx3-ubyte", w.read("short/train-images-idx3-ubyte").substr(0, 500));
  write_idx(w, "zero", 40, 10);
  w.write("zero/train-images-idx3-ubyte", "");
  w.write("recipe.toml", "# a recipe\nlr = 0.1\nbatchsize = 64\n");
  w.write("two.toml", "model = \"mpl\"\n");
  w.write("three.toml", "lr = 0.1\nlr-schedule = \"cosin\"\n");
  std::filesystem::create_directories(w.path() / "folder/none");
  std::filesystem::create_directories(w.path() / "folder/one/cats");
  w.write("a_file", "");
  const Ended e = w.run(c.line);
  EXPECT_EQ(e.status, c.status) << e.out << e.err;
  EXPECT_EQ(e.err.rfind("train_imagenet: ", 0), 0u) << e.err;
  for (const std::string& part : c.says) expect_has(e.err, part);
  EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
  EXPECT_FALSE(w.has("out")) << "an output directory was left behind";
  EXPECT_FALSE(w.has("runs"));
}

const std::string kGood = "$TRAIN --data mnist:good --batch-size 16 --epochs 1 ", kOut = " --output out";

INSTANTIATE_TEST_SUITE_P(
    BadInput, Refuses,
    ::testing::Values(
        Refusal{"UnknownModel", kGood + "--model small-cn" + kOut, 2, {"small-cn", "did you mean small-cnn"}},
        Refusal{"UnknownModelInToml",
                "$TRAIN --data mnist:good --config two.toml" + kOut,
                2,
                {"two.toml:1", "mlp"}},
        Refusal{"UnknownAlgorithm", kGood + "--algorithm sgdd" + kOut, 2, {"sgdd", "sgd"}},
        Refusal{"UnknownFlag", kGood + "--learning-rat 3" + kOut, 2, {"--learning-rat", "--"}},
        Refusal{"UnknownTomlKey",
                kGood + "--config recipe.toml" + kOut,
                2,
                {"recipe.toml:3", "batchsize", "batch-size"}},
        Refusal{"UnknownData",
                "$TRAIN --model mlp --data fashion-mist" + kOut,
                2,
                {"fashion-mist", "fashion-mnist"}},
        Refusal{"NoData", "$TRAIN" + kOut, 2, {"--data is needed", "fashion-mnist"}},
        Refusal{"UnknownSchedule", kGood + "--lr-schedule cosin" + kOut, 2, {"cosin", "cosine"}},
        Refusal{"UnknownScheduleInToml", kGood + "--config three.toml" + kOut, 2, {"three.toml:2", "cosine"}},
        Refusal{"UnknownInstructions", "SKEIN_CPU=sse " + kGood + kOut, 2, {"SKEIN_CPU=sse", "avx2"}},
        Refusal{"Contradiction", kGood + "--steps 3" + kOut, 2, {"--steps", "--epochs"}},
        Refusal{
            "NoPlaceForOnnx",
            "$TRAIN --data mnist:good --batch-size 16 --model mlp --steps 2 --export-onnx no/m.onnx" + kOut,
            1,
            {"no/m.onnx: this file cannot be made: No such file"}},
        Refusal{"TooManyWorkers", kGood + "--workers 4" + kOut, 2, {"--workers", "4"}},
        Refusal{"AnothersFlag", kGood + "--tau 4" + kOut, 2, {"--tau", "local-sgd"}},
        Refusal{"MissingData", "$TRAIN --model mlp --data mnist:nowhere" + kOut, 1, {"nowhere"}},
        Refusal{"EmptyFile", "$TRAIN --model mlp --data mnist:zero" + kOut, 1, {"zero/train-images"}},
        Refusal{"NoImages", "$TRAIN --model mlp --data mnist:empty" + kOut, 1, {"empty"}},
        Refusal{"TruncatedFile",
                "$TRAIN --model mlp --data mnist:short" + kOut,
                1,
                {"short/train-images", "truncated"}},
        Refusal{"LabelOutOfRange", "$TRAIN --model mlp --data mnist:label" + kOut, 1, {"label/train-", "77"}},
        Refusal{"FolderWithoutImages",
                "$TRAIN --model mlp --data imagefolder:folder/none" + kOut,
                1,
                {"folder/none"}},
        Refusal{
            "FolderOfOneClass", "$TRAIN --model mlp --data imagefolder:folder/one" + kOut, 1, {"folder/one"}},
        Refusal{"BatchLargerThanData",
                "$TRAIN --data mnist:good --batch-size 41" + kOut,
                2,
                {"--batch-size", "41", "40"}},
        Refusal{"OutputIsAFile", kGood + "--output a_file/out", 1, {"a_file"}},
        Refusal{"OutputCannotBeMade", kGood + "--output /proc/skein/out", 1, {"/proc/skein"}},
        Refusal{"OutputIsFull", "ulimit -f 1; " + kGood + "--model cnn7 --image-size 28" + kOut, 1, {"out"}},
        Refusal{"MissingWeights", kGood + "--eval-only --weights none.safetensors", 1, {"none.safetensors"}},
        Refusal{"NothingToResume", "$TRAIN --resume nowhere", 1, {"nowhere"}},
        Refusal{"ImageTooSmall", kGood + "--model cnn7 --image-size 10" + kOut, 2, {"24", "--image-size"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Refuses, MovedDataOfAResumedRunWithTheFlagThatHelps) {
  const Workplace w;
  write_idx(w, "here", 40, 10);
  ASSERT_EQ(w.run("$TRAIN --data mnist:here --model mlp --batch-size 8 --steps 2 --output out").status, 0);
  const Ended e = w.run("mv here there; $TRAIN --resume out --steps 4");
  EXPECT_EQ(e.status, 1);
  expect_has(e.err, "if the data has moved, add --data mnist:NEW_PATH to --resume");
  EXPECT_EQ(w.run("$TRAIN --resume out --steps 4 --data mnist:there").status, 0);
}

// Opening the data may take minutes. There are none here, and these errors come first.
TEST(Refuses, WhatIsWrongWithoutTheDataBeforeItOpensThem) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 1 --output out").status, 0);
  const std::string nothing = "$TRAIN --model mlp --data mnist:nowhere ";
  const std::pair<const char*, const char*> cases[] = {
      {"--lr-schedule cosin", "did you mean cosine?"},
      {"--split dirichlet", "--split"},
      {"--loss-scale some", "--loss-scale"},
      {"--weights none.safetensors", "none.safetensors"},
      {"--output out", "holds a run already"},
      {"--output /proc/skein/out", "/proc/skein"},
      {"--weights runs-of-others --output n", "runs-of-others"},
      {"--algorithm qsr --workers 2", "needs --qsr-c"}};
  for (const auto& [flags, says] : cases) {
    const Ended e = w.run(nothing + flags);
    EXPECT_NE(e.status, 0) << flags;
    expect_has(e.err, says);
    EXPECT_EQ(e.out, "") << flags;
    EXPECT_EQ(e.err.find("nowhere"), std::string::npos) << e.err;
  }
  EXPECT_FALSE(w.has("runs"));
  EXPECT_FALSE(w.has("n"));
}

TEST(Refuses, UnwritableOutput) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const Workplace w;
  ASSERT_EQ(w.run("mkdir locked; chmod 500 locked").status, 0);
  const Ended e = w.run(std::string(kTiny) + "--output locked/out");
  EXPECT_EQ(e.status, 1);
  expect_has(e.err, "locked");
}

TEST(Refuses, ToWriteIntoAnotherRun) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 2 --output out").status, 0);
  const std::string before = w.read("out/metrics.jsonl");
  const Ended e = w.run(std::string(kTiny) + "--steps 2 --output out");
  EXPECT_EQ(e.status, 2);
  expect_has(e.err, "holds a run already");
  EXPECT_EQ(w.read("out/metrics.jsonl"), before);
}

TEST(Refuses, ResumingAnotherTraining) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 2 --output out").status, 0);
  const std::pair<const char*, const char*> changes[] = {
      {"--model small-cnn", "model"},
      {"--batch-size 8", "batch-size"},
      {"--seed 2", "seed"},
      {"--data synthetic:8x8x1,classes=4,train=64,test=30", ""},
      {"--data fashion-mnist", "data"},
      {"--precision bf16", "precision"}};
  for (const auto& [flag, name] : changes) {
    const Ended e = w.run(std::string("$TRAIN --resume out --steps 4 ") + flag);
    EXPECT_NE(e.status, 0) << flag;
    expect_has(e.err, name);
  }
  EXPECT_EQ(w.run("$TRAIN --resume out --steps 4 --weights out/model.safetensors").status, 2);
  EXPECT_EQ(w.run("$TRAIN --resume out --steps 4").status, 0);
}

TEST(Refuses, WeightsOfAnotherNumberOfClasses) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 2 --output out").status, 0);
  const Ended e = w.run(
      "$TRAIN --data synthetic:8x8x1,classes=5,train=64,test=30 --model mlp --eval-only "
      "--weights out/model.safetensors");
  EXPECT_EQ(e.status, 1);
  expect_has(e.err, "out/model.safetensors");
  expect_has(e.err, "classes");
}

TEST(Refuses, ALossThatIsNotANumber) {
  const Workplace w;
  const Ended e = w.run(std::string(kTiny) + "--lr 1e30 --warmup-epochs 0 --epochs 5 --output out");
  EXPECT_EQ(e.status, 1);
  expect_has(e.err, "not a finite number");
  expect_has(e.err, "--lr");
  EXPECT_FALSE(w.has("out/model.safetensors"));
}

}  // namespace
}  // namespace skein
