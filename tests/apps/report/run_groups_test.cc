// Groups of runs: which runs are one group, and what names tell groups apart.
#include "apps/report/run_groups.h"

#include <gtest/gtest.h>

#include "engine/base.h"
#include "tests/support/run_files.h"

namespace skein::apps {
namespace {

std::vector<std::string> labels_of(const std::vector<Json>& configs) {
  std::vector<RunFiles> runs;
  for (size_t i = 0; i < configs.size(); ++i)
    runs.push_back(run_of(text("runs/", char('a' + i)), configs[i]));
  std::vector<std::string> labels;
  for (const RunGroup& g : group_runs(std::move(runs))) labels.push_back(g.label);
  return labels;
}

using Labels = std::vector<std::string>;

TEST(RunGroups, AreNamedByAsFewFlagsAsTellThemApart) {
  EXPECT_EQ(labels_of({config_of("sgp")}), (Labels{"sgp"}));
  EXPECT_EQ(labels_of({config_of("sgp"), with(config_of("d-psgd"), "lr", 0.25)}), (Labels{"sgp", "d-psgd"}));
  EXPECT_EQ(labels_of({config_of("sgp"), with(config_of("sgp"), "lr", 0.25)}),
            (Labels{"sgp, lr 0.5", "sgp, lr 0.25"}));
  EXPECT_EQ(labels_of({config_of("sgp"), with(config_of("sgp"), "nesterov", false),
                       with(config_of("sgp"), "workers", 8)}),
            (Labels{"sgp, 4 workers, nesterov", "sgp, 4 workers, no nesterov", "sgp, 8 workers, nesterov"}));
  EXPECT_EQ(labels_of({with(config_of("sgp"), "tau", 8), config_of("sgp")}),
            (Labels{"sgp, tau 8", "sgp, tau default"}));
}

TEST(RunGroups, OnOtherDataSayOnWhichThoughTheAlgorithmTellsThemApart) {
  EXPECT_EQ(labels_of({config_of("sgp"), with(config_of("sgd"), "data", "synthetic")}),
            (Labels{"sgp, mnist", "sgd, synthetic"}));
}

TEST(RunGroups, WhereARunWasWrittenDoesNotTellItApart) {
  EXPECT_EQ(labels_of({config_of("sgp"), with(config_of("sgp"), "output", "elsewhere")}),
            (Labels{"sgp, a", "sgp, b"}));
}

TEST(RunGroups, SeedsOfOneConfigurationAreOneGroup) {
  EXPECT_EQ(
      labels_of({config_of("sgp", 1), config_of("d-psgd", 1), config_of("sgp", 2), config_of("sgp", 3)}),
      (Labels{"sgp (3 seeds)", "d-psgd"}));
  EXPECT_EQ(labels_of({config_of("sgp", 1), config_of("sgp", 1)}).size(),
            2u);  // a repetition is a group of its own
}

TEST(RunGroups, CurvesOfSeedsAreMeansWithBandsOverThem) {
  const auto groups = group_runs(
      {run_of("a", config_of("sgp", 1), {50, 70, 80}), run_of("b", config_of("sgp", 2), {60, 70, 90, 91})});
  ASSERT_EQ(groups.size(), 1u);
  const Rows rows = groups[0].rows("eval");
  ASSERT_EQ(rows.size(), 3u);  // the rows that both have
  EXPECT_EQ(rows.at(100)["top1"], 55);
  EXPECT_EQ(rows.at(100)["top1_min"], 50);
  EXPECT_EQ(rows.at(100)["top1_max"], 60);
  EXPECT_EQ(rows.at(300)["step"], 300);
  EXPECT_EQ(rows.at(300)["loss_max"], 1);  // not the spread of workers
}

TEST(RunGroups, SayWhatDiffersAndWhatIsTheSame) {
  const Differences d = differences(
      group_runs({run_of("a", config_of("sgp")), run_of("b", with(config_of("d-psgd"), "tau", 8))}));
  EXPECT_EQ(d.differ, (FlagValues{{"algorithm", {"sgp", "d-psgd"}}, {"tau", {"", "8"}}}));
  EXPECT_TRUE(std::count(d.same.begin(), d.same.end(), std::pair<std::string, std::string>("lr", "0.5")));
}

}  // namespace
}  // namespace skein::apps
