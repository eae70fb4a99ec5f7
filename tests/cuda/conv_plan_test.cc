// cuDNN's plans for our convolutions, built for a described H200: a few here, all in cudnn_sweep_test.
// Choices on disk are found again without asking, and ignored when damaged.
#include "engine/cuda/conv/conv_plan.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>

#include "tests/cuda/conv_shapes.h"
#include "tests/support/files.h"

namespace skein::cuda {
namespace {
using namespace testing;

const Layer kStem{224, 3, 64, 7, 2}, kEarly{56, 64, 64, 3, 1}, kWide{14, 256, 1024, 1, 1},
    kHalving{28, 256, 256, 3, 2};
constexpr ConvPass kPasses[] = {ConvPass::kForward, ConvPass::kData, ConvPass::kWeights};

TEST(CudnnPlans, ExistForEveryPassAndTypeOfTypicalLayers) {
  for (const Layer& l : {kStem, kEarly, kWide, kHalving, kCifar})
    for (ConvPass pass : kPasses)
      for (DType t : {kBF16, kF16, kF32}) {
        const ConvProblem k = problem(l, pass, t, 256);
        EXPECT_EQ(conv_plans(h200(), k).size(), 1u) << k;
      }
}

TEST(CudnnPlans, AddToTheResultWhereAsked) {
  for (ConvPass pass : {ConvPass::kData, ConvPass::kWeights}) {
    ConvProblem k = problem(kEarly, pass, kBF16, 256);
    k.accumulate = true;
    EXPECT_EQ(conv_plans(h200(), k).size(), 1u) << k;
  }
}

TEST(CudnnPlans, UseTensorCoresFor16BitsAndForF32OnlyAsTf32) {
  const auto best = [](DType t, bool tf32) {
    ConvProblem k = problem(kEarly, ConvPass::kForward, t, 256);
    k.tf32 = tf32;
    std::string names;
    for (const ConvPlan& p : conv_plans(h200(), k, {.at_most = 4})) names += p.name + ';';
    return names;
  };
  for (DType t : {kBF16, kF16})
    EXPECT_NE(best(t, false).find("tensor cores"), std::string::npos) << best(t, false);
  EXPECT_NE(best(kF32, true).find("tensor cores"), std::string::npos) << best(kF32, true);
  EXPECT_EQ(best(kF32, false).find("tensor cores"), std::string::npos) << best(kF32, false);
}

TEST(CudnnPlans, AreDeterministicWhereAsked) {
  for (ConvPass pass : kPasses)
    for (DType t : {kBF16, kF16, kF32}) {
      ConvProblem k = problem(kEarly, pass, t, 256);
      k.deterministic = true;
      const std::vector<ConvPlan> plans = conv_plans(h200(), k, {.at_most = 3});
      EXPECT_FALSE(plans.empty()) << k;
      for (const ConvPlan& p : plans)
        EXPECT_EQ(p.name.find("not deterministic"), std::string::npos) << p.name;
    }
}

TEST(CudnnPlans, ExistForOddShapes) {
  ConvProblem odd = problem({9, 5, 7, 3, 2}, ConvPass::kForward, kBF16, 2);
  EXPECT_EQ(conv_plans(h200(), odd).size(), 1u) << odd;
  odd = problem({12, 8, 12, 3, 1}, ConvPass::kForward, kF32, 1);
  odd.dilation = odd.padding = 2;
  EXPECT_EQ(conv_plans(h200(), odd).size(), 1u) << odd;
  odd.alignment = 4;
  EXPECT_EQ(conv_plans(h200(), odd).size(), 1u) << odd;
}

TEST(CudnnPlans, ADeviceDescribesItselfInJson) {
  EXPECT_NE(json_of(h200()).find("NVIDIA H200"), std::string::npos) << json_of(h200());
}

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
const ConvProblem kForward = problem(kEarly, ConvPass::kForward, kBF16, 256),
                  kWeights = problem(kEarly, ConvPass::kWeights, kF32, 64);

TEST(PlanCache, TheNextProcessMakesTheSamePlanWithoutAsking) {
  const Folder here;
  PlanCache first(h200_on_paper(), here.path);
  for (const ConvProblem& k : {kForward, kWeights}) {
    const ConvPlan& p = first.find(k);
    EXPECT_EQ(&first.find(k), &p);
  }
  PlanCache next(h200_on_paper(), here.path);
  for (const ConvProblem& k : {kForward, kWeights}) {
    const ConvPlan &p = next.find(k), &q = first.find(k);
    EXPECT_EQ(p.name, q.name) << k;
    EXPECT_EQ(p.choice, q.choice) << k;
    EXPECT_EQ(p.workspace, q.workspace) << k;
  }
  // The heuristics would not choose the second best.
  const std::string second = conv_plans(h200_on_paper(), kForward, {.at_most = 2}).at(1).choice;
  EXPECT_NE(first.find(kForward).choice, second);
  ChoiceFile(here.file()).keep(text(kForward), second);
  EXPECT_EQ(PlanCache(h200_on_paper(), here.path).find(kForward).choice, second);
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
  EXPECT_FALSE(PlanCache(device_properties(paper), here.path).find(kForward).choice.empty());
  const std::string second = conv_plans(h200_on_paper(), kForward, {.at_most = 2}).at(1).choice;
  ChoiceFile(here.file()).keep(text(kForward), second);
  const auto asked_on = [&](const char* field, auto value) {
    auto json = nlohmann::json::parse(paper);
    EXPECT_TRUE(json.contains(field)) << field;
    json[field] = value;
    PlanCache cache(device_properties(json.dump()), here.path);
    EXPECT_FALSE(cache.find(kForward).choice.empty());
    return cache.find(kForward).choice != second;  // what it finds in the file, and would not choose itself
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
  EXPECT_EQ(PlanCache(h200_on_paper(), here.path).find(kForward).choice, choice);
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

TEST(PlanCacheChoice, ToFuseOrNotIsRemembered) {
  const ConvProblem k = problem(kEarly, ConvPass::kForward, kBF16, 256);  // any plan that loads will do
  const ScratchDir here;
  int asked = 0;
  const auto none = [&](const std::vector<ConvPlan>&) -> std::optional<size_t> {
    return ++asked, std::nullopt;
  };
  const auto last = [&](const std::vector<ConvPlan>& p) -> std::optional<size_t> {
    return ++asked, p.size() - 1;
  };
  const PlanWish three{.at_most = 3};
  {
    PlanCache cache(h200_on_paper(), here.path());
    EXPECT_EQ(cache.choose(k, three, true, none), nullptr);
    EXPECT_EQ(cache.choose(k, three, true, last), nullptr);  // within the process
  }
  PlanCache next(h200_on_paper(), here.path());
  EXPECT_EQ(next.choose(k, three, true, last), nullptr);  // and in the next one
  EXPECT_EQ(asked, 1);
  PlanCache unmeasured(h200_on_paper(), here.path());
  const ConvPlan* p = unmeasured.choose(k, three, false, last);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(asked, 2);
  PlanCache again(h200_on_paper(), here.path());
  EXPECT_EQ(again.choose(k, three, false, none)->choice, p->choice);
  EXPECT_EQ(asked, 2);
}

TEST(PlanCacheChoice, WhereCudnnHasNoWayToFuseThereIsNoPlanAndNoError) {
  PlanCache cache(h200_on_paper(), "");
  ConvProblem odd = fused({9, 5, 7, 3, 2}, kSums, kF32, 2), grouped = fused({9, 8, 8, 3, 1}, kSums, kBF16, 2);
  odd.alignment = 4;
  grouped.groups = 8;
  const auto first = [](const std::vector<ConvPlan>&) -> std::optional<size_t> { return 0; };
  for (const ConvProblem& k : {odd, grouped})
    EXPECT_EQ(cache.choose(k, {.compiled = false}, false, first), nullptr) << k;
}

TEST(PlanCacheChoice, ThePickMayAskTheCache) {
  PlanCache cache(h200_on_paper(), "");
  ConvProblem k = problem(kEarly, ConvPass::kForward, kBF16, 256), other = k;
  other.n = 8;
  std::string name;
  const auto pick = [&](const std::vector<ConvPlan>&) -> std::optional<size_t> {
    name = cache.find(other).name;
    return 0;
  };
  EXPECT_NE(cache.choose(k, {}, false, pick), nullptr);
  EXPECT_FALSE(name.empty());
}

}  // namespace
}  // namespace skein::cuda
