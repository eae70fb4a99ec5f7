// Choices of cuDNN's plans on disk, for a described H200: they are found again without asking,
// and ignored when damaged.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>

#include "tests/cuda/conv_shapes.h"

namespace skein::cuda {
namespace {
using namespace testing;
namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "skein-plans-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    path = pattern;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path file() const { return fs::directory_iterator(path)->path(); }
  std::string path;
};

const Layer kSquare{56, 64, 64, 3, 1};
const ConvProblem kForward = problem(kSquare, ConvPass::kForward, kBF16, 256),
                  kWeights = problem(kSquare, ConvPass::kWeights, kF32, 64);

TEST(PlanCache, TheNextProcessMakesTheSamePlanWithoutAsking) {
  const Folder here;
  PlanCache first(h200_on_paper(), here.path);
  const int64_t before = heuristics_asked();
  for (const ConvProblem& k : {kForward, kWeights}) {
    const ConvPlan& p = first.find(k);
    EXPECT_EQ(&first.find(k), &p);
  }
  const int64_t after = heuristics_asked();
  EXPECT_GE(after, before + 2);
  PlanCache next(h200_on_paper(), here.path);
  for (const ConvProblem& k : {kForward, kWeights}) {
    const ConvPlan &p = next.find(k), &q = first.find(k);
    EXPECT_EQ(p.name, q.name) << k;
    EXPECT_EQ(p.choice, q.choice) << k;
    EXPECT_EQ(p.workspace, q.workspace) << k;
  }
  EXPECT_EQ(heuristics_asked(), after);
}

TEST(PlanCache, EveryCandidatesChoiceMakesIt) {
  const Descriptor device = h200_on_paper();
  for (const ConvPlan& p : conv_plans(device, kForward, {.at_most = 4})) {
    const auto again = plan_of(device, kForward, p.choice);
    ASSERT_TRUE(again) << p.name << ' ' << p.choice;
    EXPECT_EQ(again->name, p.name);
    EXPECT_EQ(again->choice, p.choice);
  }
}

TEST(PlanCache, NumericsAndMeasurementHaveChoicesOfTheirOwn) {
  const Folder here;
  ConvProblem tf32 = kWeights, exact = kWeights;
  tf32.tf32 = true;
  {
    PlanCache cache(h200_on_paper(), here.path);
    EXPECT_NE(cache.find(tf32).name.find("tensor cores"), std::string::npos);
    EXPECT_EQ(cache.find(exact).name.find("tensor cores"), std::string::npos);
  }
  PlanCache measuring(h200_on_paper(), here.path);
  size_t seen = 0;
  const auto last = [&](const std::vector<ConvPlan>& plans) { return (seen = plans.size()) - 1; };
  const std::string chosen = measuring.find(kForward, last).choice;
  EXPECT_GT(seen, 1u);
  PlanCache again(h200_on_paper(), here.path), plain(h200_on_paper(), here.path);
  seen = 0;
  EXPECT_EQ(again.find(kForward, last).choice, chosen);
  EXPECT_EQ(seen, 0u);  // nothing is measured twice
  EXPECT_NE(plain.find(kForward).choice, chosen);
}

TEST(PlanCache, ChoicesServeEveryGpuOfThatKindAndNoOther) {
  const Folder here;
  const std::string paper = json_of(h200_on_paper());
  const std::string choice = PlanCache(device_properties(paper), here.path).find(kForward).choice;
  const auto asked_on = [&](const char* field, auto value) {
    auto json = nlohmann::json::parse(paper);
    EXPECT_TRUE(json.contains(field)) << field;
    json[field] = value;
    const int64_t before = heuristics_asked();
    PlanCache cache(device_properties(json.dump()), here.path);
    EXPECT_FALSE(cache.find(kForward).choice.empty());
    return heuristics_asked() > before;
  };
  EXPECT_FALSE(asked_on("pciDeviceId", 7));
  EXPECT_FALSE(asked_on("cudaDeviceId", 3));
  EXPECT_FALSE(asked_on("driverVer", 13020));
  EXPECT_FALSE(asked_on("totalGlobalMem", 150754820096 - (64 << 20)));
  EXPECT_TRUE(asked_on("multiProcessorCount", 114));
  EXPECT_TRUE(asked_on("deviceName", "NVIDIA H100"));
  EXPECT_TRUE(asked_on("totalGlobalMem", 85899345920));
}

TEST(PlanCache, WhatIsDamagedOrCannotBeIsChosenAnew) {
  const Folder here;
  const std::string choice = PlanCache(h200_on_paper(), here.path).find(kForward).choice;
  std::ofstream(here.file()) << "no such file";
  EXPECT_EQ(PlanCache(h200_on_paper(), here.path).find(kForward).choice, choice);
  ChoiceFile(here.file()).keep(text(kForward), "987654 1=1");
  const int64_t before = heuristics_asked();
  EXPECT_EQ(PlanCache(h200_on_paper(), here.path).find(kForward).choice, choice);
  EXPECT_GT(heuristics_asked(), before);
  for (const char* nonsense : {"", "x", "1 2", "0 999=1", "-5", "1 99999999999999999999=1"})
    EXPECT_FALSE(plan_of(h200_on_paper(), kForward, nonsense)) << nonsense;
}

// A choice made under another setting must not bypass what numerics forbid.
TEST(PlanCache, AForbiddenEngineIsNotRemembered) {
  const Descriptor device = h200_on_paper();
  ConvProblem tf32 = kWeights;
  tf32.tf32 = true;
  const std::vector<ConvPlan> plans = conv_plans(device, tf32, {.at_most = 1});
  ASSERT_FALSE(plans.empty());
  EXPECT_FALSE(plan_of(device, kWeights, plans[0].choice)) << plans[0].name;
}

}  // namespace
}  // namespace skein::cuda
