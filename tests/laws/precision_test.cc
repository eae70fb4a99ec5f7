// Training in 16 bits: as good as in fp32, with a loss scale that is recorded, kept and can be refused.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;
using testing_programs::Workplace;

const std::string kHalfTask =
    "timeout 200 $TRAIN --data synthetic:12x12x1,classes=4,train=256,test=64 --model small-cnn --image-size "
    "12 "
    "--batch-size 16 --lr 0.05 --reference-batch 0 --lr-schedule constant --warmup-epochs 0 --augment none "
    "--threads 1 --transport local --checkpoint-every 0 --log-every 5 --device cpu ";

json summary(const Workplace& w, const std::string& run) {
  return json::parse(w.read(run + "/summary.json"));
}

// Losses of the steps that are logged.
std::vector<double> course(const Workplace& w, const std::string& run) {
  std::vector<double> losses;
  std::istringstream lines(w.read(run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (const json j = json::parse(line); j["event"] == "step") losses.push_back(j["loss"]);
  return losses;
}

// What passes from an image to its logits is rounded nine times (the image; three times a convolution and a
// norm; the mean and the product), its gradient as often on the way back. Each takes a share of u at most, so
// gradients, and what they make of the loss, may differ by 18 u.
TEST(Precision, SixteenBitsLearnWhatFloatsLearn) {
  const Workplace w;
  constexpr double kRoundings = 18;
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    const Ended e = w.run(kHalfTask + "--steps 60 --precision " + precision + " --output " + precision);
    ASSERT_EQ(e.status, 0) << precision << e.err;
  }
  const std::vector<double> exact = course(w, "fp32");
  ASSERT_EQ(exact.size(), 12u);
  EXPECT_GT(exact.front(), 1.2) << "log 4 is where it begins";
  EXPECT_LT(exact.back(), 0.1) << "or there is nothing to compare";
  for (const auto& [precision, u] : {std::pair("bf16", 0x1p-8), {"fp16", 0x1p-11}}) {
    const std::vector<double> rounded = course(w, precision);
    ASSERT_EQ(rounded.size(), exact.size());
    double apart = 0, all = 0;
    for (size_t i = 0; i < exact.size(); ++i) apart += std::abs(rounded[i] - exact[i]), all += exact[i];
    EXPECT_LT(apart / all, kRoundings * u) << precision;
  }
  EXPECT_FALSE(summary(w, "fp32").contains("loss_scale"));
  EXPECT_FALSE(summary(w, "bf16").contains("skipped_steps"));
  const json half = summary(w, "fp16");
  EXPECT_GE(half["loss_scale"].get<double>(), 256) << "it does not fall further than the gradients need";
  EXPECT_EQ(half["loss_scale"].get<double>() * std::exp2(half["skipped_steps"].get<double>()), 65536)
      << "each skipped step has halved it, and 60 steps are too few to double it";
}

TEST(Precision, TheScaleIsRecordedAndCanBeFixedOrLeftOut) {
  const Workplace w;
  ASSERT_EQ(w.run(kHalfTask + "--steps 10 --precision fp16 --loss-scale 512 --output fixed").status, 0);
  EXPECT_EQ(summary(w, "fixed")["loss_scale"], 512);
  EXPECT_EQ(summary(w, "fixed")["skipped_steps"], 0);
  EXPECT_NE(w.read("fixed/metrics.jsonl").find("\"loss_scale\":512.0,\"skipped_steps\":0.0"),
            std::string::npos);
  ASSERT_EQ(w.run(kHalfTask + "--steps 10 --precision fp16 --loss-scale none --output none").status, 0);
  EXPECT_FALSE(summary(w, "none").contains("loss_scale"));
  const Ended e = w.run(kHalfTask + "--steps 10 --loss-scale dynamic --output floats");
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_EQ(summary(w, "floats")["loss_scale"], 65536) << "no gradient of f32 overflows";
}

TEST(Precision, AScaleThatCannotBeIsRefusedByName) {
  const Workplace w;
  for (const std::string word : {"-1", "0", "dynamik", "1e9"}) {
    const Ended e = w.run(kHalfTask + "--steps 2 --precision fp16 --output no --loss-scale=" + word);
    EXPECT_EQ(e.status, 2) << word;
    EXPECT_NE(e.err.find("--loss-scale " + word + ": allowed are auto"), std::string::npos) << e.err;
    EXPECT_FALSE(w.has("no"));
  }
}

TEST(Precision, ATrainingThatOverflowsForGoodEnds) {
  const Workplace w;
  const Ended e = w.run(kHalfTask + "--steps 60 --precision fp16 --loss-scale 16777216 --output lost");
  EXPECT_EQ(e.status, 1);
  EXPECT_NE(e.err.find("gradients (up to step 10) were not finite with a loss scale of 1"), std::string::npos)
      << e.err;
}

TEST(Precision, WorkersThatAverageGradientsKeepOneScale) {
  const Workplace w;
  const Ended e =
      w.run(kHalfTask + "--steps 12 --precision fp16 --workers 3 --algorithm allreduce --output together");
  ASSERT_EQ(e.status, 0) << e.err;
  const json s = summary(w, "together");
  const auto& hashes = s["worker_hashes"];
  ASSERT_EQ(hashes.size(), 3u);
  EXPECT_TRUE(hashes[0] == hashes[1] && hashes[1] == hashes[2]);
  const double skipped = s["skipped_steps"];
  EXPECT_EQ(skipped, std::floor(skipped)) << "all skip the same steps";
  EXPECT_EQ(s["loss_scale"].get<double>() * std::exp2(skipped), 65536);
}

}  // namespace
}  // namespace skein
