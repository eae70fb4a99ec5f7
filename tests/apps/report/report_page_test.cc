// What a browser draws of a run's page.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "apps/report/report.h"
#include "tests/apps/report/run_pages.h"
#include "tests/support/browser.h"

namespace skein::apps {
namespace {

using testing::count;
using testing::has;
using testing::ScratchDir;
using testing::slurp;
using testing::spill;

class InBrowser : public ::testing::TestWithParam<int> {};

TEST_P(InBrowser, EveryCurveIsDrawn) {
  if (testing::browser().empty())
    GTEST_SKIP() << "no chromium, chromium-browser or google-chrome is installed";
  const ScratchDir dir;
  write_run(dir.path(), GetParam());
  const std::string dom = testing::drawn(write_report(dir.path()), dir);
  EXPECT_EQ(count(dom, "role=\"application\""), GetParam() > 1 ? 6u : 4u);
  for (const char* line : {"train", "test", "rate"}) {
    const size_t at = dom.find(text("data-line=\"", line, '"'));
    ASSERT_NE(at, std::string::npos) << line;
    const std::string tag = dom.substr(dom.rfind('<', at), 2000);
    EXPECT_TRUE(has(tag, "d=\"M")) << line << ' ' << tag.substr(0, 200);
    EXPECT_FALSE(has(tag.substr(0, tag.find('>')), "NaN")) << line;
  }
  EXPECT_EQ(count(dom, "class=\"curve\""), GetParam() > 1 ? 10u : 6u);
  EXPECT_EQ(count(dom, "class=\"band\""), GetParam() > 1 ? 2u : 0u);
  EXPECT_EQ(count(dom, "class=\"card tile\""), GetParam() > 1 ? 9u : 7u);
  EXPECT_TRUE(has(dom, "91.3\u202f%"));
  EXPECT_TRUE(has(dom, "Where the time went"));
  EXPECT_EQ(count(dom, "class=\"row shard\""), GetParam() > 1 ? 4u : 0u);
  EXPECT_EQ(count(dom, "class=\"span\""), GetParam() > 1 ? 4u : 0u);
  if (GetParam() == 1) return;
  EXPECT_TRUE(has(dom, "<title>transfer: all_reduce, 35\u202fms, step 7, from worker 1, 1\u202fkB</title>"));
  EXPECT_TRUE(has(dom, "87.3\u202f%"));
  EXPECT_TRUE(has(dom, "1.08\u202fMB"));
  EXPECT_EQ(count(dom, "title=\"geese: "), 4u);
  EXPECT_TRUE(has(dom, "title=\"geese: 0\""));
  EXPECT_TRUE(has(dom, "title=\"swans: 50\""));
}
TEST(ReportPage, TickLabelsOfAShortRunDiffer) {
  if (testing::browser().empty())
    GTEST_SKIP() << "no chromium, chromium-browser or google-chrome is installed";
  const ScratchDir dir;
  {
    MetricsLog log(dir.path());
    log.write(RunEvent{});
    for (int k = 1; k <= 3; ++k) {
      StepEvent e;
      e.step = k, e.epoch = k * 0.004, e.seconds = k * 0.0007, e.learning_rate = 0.01 + k * 0.0004,
      e.loss = 2.3021 + k * 1e-4;
      log.write(e);
    }
  }
  const std::string dom = testing::drawn(write_report(dir.path()), dir);
  size_t charts = 0;
  for (size_t at = 0; (at = dom.find("role=\"application\"", at)) != std::string::npos; ++charts) {
    const size_t end = dom.find("</svg>", at);
    std::map<std::string, int> left, below;  // by the alignment
    for (; (at = dom.find("<text", at)) < end; ++at) {
      const std::string tag = dom.substr(at, dom.find("</text>", at) - at);
      if (has(tag, "axis")) continue;
      ++(has(tag, " y=\"228\"") ? below : left)[tag.substr(tag.find('>') + 1)];
    }
    for (const auto& labels : {left, below}) {
      EXPECT_GE(labels.size(), 2u);
      for (const auto& [label, times] : labels) EXPECT_EQ(times, 1) << label;
    }
    at = end;
  }
  EXPECT_GE(charts, 3u);
}

// The page in a browser for a run of four workers, with this added to its summary, and this evaluation.
std::string drawn_with(const Json& more, const Json& evaluation) {
  const ScratchDir dir;
  write_run(dir.path(), 4);
  Json summary = Json::parse(slurp(dir / "summary.json"));
  summary.update(more);
  spill(dir / "summary.json", summary.dump());
  if (!evaluation.is_null()) spill(dir / "evaluation.json", evaluation.dump());
  return testing::drawn(write_report(dir.path()), dir);
}

TEST(ReportPage, ShowsTheParametersOfLargeModelsInMillions) {
  if (testing::browser().empty()) GTEST_SKIP() << "no browser is installed";
  const std::string dom = drawn_with({{"parameters", 11178564}}, nullptr);
  EXPECT_TRUE(has(dom, "<b>11.2\u202fM</b>"));
  EXPECT_FALSE(has(dom, "11,178,564"));
}

TEST(ReportPage, ShowsWhatWasRefusedBesideTheResults) {
  if (testing::browser().empty()) GTEST_SKIP() << "no browser is installed";
  const std::string dom = drawn_with({{"environment", {{"refused_callers", 2}}}}, nullptr);
  EXPECT_TRUE(
      has(dom, "<span>refused from the network</span><b>2</b><i>2 callers without this job's key</i>"));
  const std::string quiet = drawn_with({{"environment", {{"refused_callers", 0}}}}, nullptr);
  EXPECT_TRUE(has(quiet, "<td>refused from the network</td><td>nothing</td>"));
  EXPECT_FALSE(has(quiet, "<span>refused from the network</span>"));
}

TEST(ReportPage, SplitsTheTimeOfAllWorkersInPaintsThatDiffer) {
  if (testing::browser().empty()) GTEST_SKIP() << "no browser is installed";
  const std::string dom = drawn_with({{"seconds_by_stage", {{"read", 0}}}}, nullptr);
  EXPECT_FALSE(has(dom.substr(0, dom.find("<script")),
                   "Loading, beside the computing"));  // there is nothing to show
  const std::string legend = dom.substr(dom.find("class=\"legend\""), 4000);
  std::set<std::string> paints;
  for (const std::string name : {"peers", "checkpoint", "other"}) {
    const size_t at = legend.find(">" + name + "<");
    ASSERT_NE(at, std::string::npos) << name;
    paints.insert(legend.substr(legend.rfind("<div", at), at - legend.rfind("<div", at)));
  }
  EXPECT_EQ(paints.size(), 3u);
  EXPECT_EQ(count(dom, "title=\"other "), 4u);  // each worker's
}

TEST(ReportPage, ShowsUnusualFilesAsATableAlsoOfOlderRuns) {
  if (testing::browser().empty()) GTEST_SKIP() << "no browser is installed";
  const std::string dom = drawn_with({{"odd_files",
                                       {{"train", {{"converted", {{"files", 9}, {"cmyk", 5}, {"grey", 4}}}}},
                                        {"test", {{"left_out", {{"files", 1}, {"empty", 1}}}}}}},
                                      {"unreadable", 1},
                                      {"unreadable_names", {"val/a.jpg"}}},
                                     nullptr);
  EXPECT_TRUE(has(dom, "Unusual image files"));
  EXPECT_TRUE(has(dom, "<th>gray</th><td>converted to RGB</td><td>4</td><td>0</td>"));
  EXPECT_TRUE(has(dom, "<th>empty</th><td>skipped</td><td>0</td><td>1</td>"));
  EXPECT_TRUE(has(dom, "Skipped: val/a.jpg<"));
}

TEST(ReportPage, ShowsClassesTheirConfusionsAndMistakes) {
  if (testing::browser().empty()) GTEST_SKIP() << "no browser is installed";
  const std::string picture = "data:image/png;base64,iVBORw0KGgo=";
  const std::string dom = drawn_with(
      Json::object(),
      {{"step", 2820},
       {"images", 30},
       {"classes", {"geese", "swans", "<b>ducks"}},
       {"images_by_class", {20, 10, 0}},
       {"correct_by_class", {19, 5, 0}},
       {"confusions", {{1, 0, 5}, {0, 2, 1}}},
       {"confusion", {{19, 0, 1}, {5, 5, 0}, {0, 0, 0}}},
       {"mistakes",
        {{{"name", "a.png"}, {"truth", 0}, {"guess", 2}, {"probability", 0.9}, {"picture", picture}}}}});
  EXPECT_TRUE(has(dom, "title=\"geese: 19 of 20 images\""));
  EXPECT_TRUE(has(dom, "95.0\u202f%"));
  EXPECT_TRUE(has(dom, "title=\"swans taken for geese: 5 of 10\""));
  EXPECT_TRUE(has(dom, "without test images: &lt;b&gt;ducks"));
  EXPECT_TRUE(has(dom, "<img src=\"" + picture));
  EXPECT_TRUE(has(dom, "<b>&lt;b&gt;ducks</b> 90.0\u202f%<i>is geese</i>"));
}

TEST(ReportPage, OfAThousandClassesShowsTheLowestAndStaysSmall) {
  if (testing::browser().empty()) GTEST_SKIP() << "no browser is installed";
  Json e = {{"step", 1}, {"images", 50000}, {"confusions", Json::array()}};
  for (int c = 0; c < 1000; ++c) {
    e["classes"].push_back(text("class-", c)), e["images_by_class"].push_back(50);
    e["correct_by_class"].push_back(c % 40);
    for (int k = 1; k < 4; ++k) e["confusions"].push_back({c, (c + k) % 1000, 1});
  }
  const std::string dom = drawn_with(Json::object(), e);
  EXPECT_TRUE(has(dom, "the 20 with the lowest accuracy, of 1,000"));
  EXPECT_EQ(count(dom, "class=\"class\""), 20u);
  EXPECT_TRUE(has(dom, "Most frequent confusions"));
  EXPECT_LT(dom.size(), 700u << 10);
}

INSTANTIATE_TEST_SUITE_P(ReportPage, InBrowser, ::testing::Values(1, 4));

}  // namespace
}  // namespace skein::apps
