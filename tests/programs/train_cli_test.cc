// train_imagenet as a program: its output, files, refusals and exit codes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using testing_programs::Ended;
using testing_programs::expect_has;
using testing_programs::Workplace;
using Json = nlohmann::json;

constexpr const char* kTiny =
    "$TRAIN --data synthetic:8x8x1,classes=3,train=64,test=30 --model mlp --batch-size 16 ";

std::string big_endian(uint32_t v) { return {char(v >> 24), char(v >> 16), char(v >> 8), char(v)}; }
// n gray images of 8x8 and labels modulo `classes`, in the MNIST family's format; `first` replaces label 0.
void write_idx(const Workplace& w, const std::string& dir, int n, int classes, char first = 0) {
  std::string images = big_endian(0x803) + big_endian(uint32_t(n)) + big_endian(8) + big_endian(8);
  std::string labels = big_endian(0x801) + big_endian(uint32_t(n));
  images += std::string(size_t(n) * 64, 'x');
  for (int i = 0; i < n; ++i) labels += char(i == 0 && first ? first : i % classes);
  for (const char* part : {"train", "t10k"}) {
    w.write(dir + "/" + part + "-images-idx3-ubyte", images);
    w.write(dir + "/" + part + "-labels-idx1-ubyte", labels);
  }
}

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

TEST(Train, NamesItsDirectoryAfterModelAndDataIfNotTold) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 1").status, 0);
  EXPECT_EQ(w.run("ls -d runs/mlp-synthetic-*/model.safetensors").status, 0);
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

TEST(Refuses, MovedDataOfAResumedRunWithTheFlagThatHelps) {
  const Workplace w;
  write_idx(w, "here", 40, 10);
  ASSERT_EQ(w.run("$TRAIN --data mnist:here --model mlp --batch-size 8 --steps 2 --output out").status, 0);
  const Ended e = w.run("mv here there; $TRAIN --resume out --steps 4");
  EXPECT_EQ(e.status, 1);
  expect_has(e.err, "if the data has moved, add --data mnist:NEW_PATH to --resume");
  EXPECT_EQ(w.run("$TRAIN --resume out --steps 4 --data mnist:there").status, 0);
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
        Refusal{"Contradiction", kGood + "--steps 3" + kOut, 2, {"--steps", "--epochs"}},
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

TEST(Refuses, UnwritableOutput) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const Workplace w;
  ASSERT_EQ(w.run("mkdir locked; chmod 500 locked").status, 0);
  const Ended e = w.run(std::string(kTiny) + "--output locked/out");
  EXPECT_EQ(e.status, 1);
  expect_has(e.err, "locked");
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
