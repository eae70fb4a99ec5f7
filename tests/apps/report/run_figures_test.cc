// The figures of runs that are compared.
#include "apps/report/run_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tests/support/files.h"
#include "tests/support/run_files.h"

namespace skein::apps {
namespace {

using testing::has;

const FigureColumn* column(const std::vector<FigureColumn>& all, const std::string& name) {
  for (const FigureColumn& c : all)
    if (c.name == name) return &c;
  return nullptr;
}

TEST(RunFigures, CompareByTheAccuracyThatAllReached) {
  const auto groups = group_runs(
      {run_of("a", config_of("sgp"), {50, 70, 80}), run_of("b", config_of("d-psgd"), {72, 71.5, 71})});
  const auto figures = figures_of(groups);
  ASSERT_TRUE(column(figures, "to 72.0 %"));
  EXPECT_EQ(column(figures, "to 72.0 %")->figures[0].value, 30);
  EXPECT_EQ(column(figures, "to 72.0 %")->figures[1].value, 10);
  EXPECT_TRUE(column(figures, "to 72.0 %")->figures[1].best);
  EXPECT_EQ(column(figures, "to 72.0 %, sent")->figures[0].value, 24e6);
  EXPECT_EQ(column(figures, "best")->figures[1].value, 72);
  EXPECT_EQ(column(figures, "top-1")->figures[1].value, 71);
  EXPECT_TRUE(column(figures, "top-1")->figures[0].best);
  EXPECT_FALSE(column(figures, "top-1")->figures[1].best);
  EXPECT_FALSE(column(figures, "hidden"));  // no run has it
}

TEST(RunFigures, OfSeedsAreMeansAndDeviations) {
  const auto figures = figures_of(
      group_runs({run_of("a", config_of("sgp", 1), {80}), run_of("b", config_of("sgp", 2), {84})}));
  EXPECT_EQ(column(figures, "top-1")->figures[0].value, 82);
  EXPECT_NEAR(*column(figures, "top-1")->figures[0].spread, std::sqrt(8), 1e-9);
}

TEST(RunFigures, TheTableOfTextIsAligned) {
  const auto groups = group_runs({run_of("a", config_of("sgp", 1)), run_of("b", config_of("sgp", 2)),
                                  run_of("c", config_of("allreduce"))});
  std::istringstream table(text_table(groups, figures_of(groups)));
  std::vector<size_t> widths;
  std::string all;
  for (std::string line; std::getline(table, line); all += line + '\n')
    widths.push_back(
        size_t(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; })));
  EXPECT_EQ(widths.size(), 3u);
  EXPECT_TRUE(widths[0] == widths[1] && widths[1] == widths[2]) << all;
  EXPECT_TRUE(has(all, "sgp (2 seeds)") && has(all, "80.00 %") && has(all, "24 MB")) << all;
}

}  // namespace
}  // namespace skein::apps
