// Several runs on the same axes: the page and the program that makes it.
#include "apps/report/compare.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/browser.h"
#include "tests/support/program.h"
#include "tests/support/run_files.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using testing::count;
using testing::has;
using testing::message_of;
using testing::ScratchDir;
using testing::spill;
using testing_programs::Ended;
using testing_programs::Workplace;

void leave_run(const std::string& dir, const RunFiles& run) {
  fs::create_directories(dir);
  std::string lines;
  for (const Json& j : run.runs) lines += j.dump() + '\n';
  for (const auto& [kind, rows] : run.rows)
    for (const auto& [step, j] : rows) lines += j.dump() + '\n';
  spill(dir + "/metrics.jsonl", lines);
}

TEST(Comparison, FindsRunsInDirectoriesOfRunsEachOnce) {
  const ScratchDir dir;
  leave_run(dir / "runs/b", run_of("", config_of("sgp")));
  leave_run(dir / "runs/a", run_of("", config_of("d-psgd")));
  fs::create_directories(dir / "runs/empty");
  fs::create_symlink("loop", dir / "runs/loop");
  const auto runs = find_runs({dir / "runs/b", dir / "runs"});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].directory, dir / "runs/b");
  EXPECT_EQ(runs[1].directory, dir / "runs/a");
}

TEST(Comparison, RefusesWhatIsNoRun) {
  const ScratchDir dir;
  fs::create_directories(dir / "empty");
  spill(dir / "file", "");
  leave_run(dir / "torn", RunFiles{});
  const auto refusal = [&](const std::string& name) {
    return message_of<BadOption>([&] { find_runs({dir / name}); });
  };
  EXPECT_TRUE(has(refusal("nothing"), "there is no such directory")) << refusal("nothing");
  EXPECT_TRUE(has(refusal("file"), "is no directory")) << refusal("file");
  EXPECT_TRUE(has(refusal("empty"), "holds no run")) << refusal("empty");
  EXPECT_TRUE(has(refusal("torn"), "no event of a run")) << refusal("torn");
}

TEST(Comparison, DrawsEveryRunInEveryChart) {
  if (testing::browser().empty())
    GTEST_SKIP() << "no chromium, chromium-browser or google-chrome is installed";
  const ScratchDir dir;
  const Comparison c =
      compare({run_of("a", config_of("sgp", 1)), run_of("b", config_of("sgp", 2), {60, 75, 85}),
               run_of("c", with(config_of("</script><script>alert(1)"), "tau", 8))});
  EXPECT_FALSE(has(c.page, "<script>alert"));
  EXPECT_TRUE(has(c.page, "<title>mlp on mnist: 3 runs compared</title>"));
  spill(dir / "page.html", c.page);
  const std::string dom = testing::drawn(dir / "page.html", dir);
  EXPECT_EQ(count(dom, "role=\"application\""), 4u);  // accuracies and losses
  EXPECT_EQ(count(dom, "data-line=\"sgp (2 seeds)\""), 4u);
  EXPECT_EQ(count(dom, "class=\"curve\""), 8u);
  EXPECT_EQ(count(dom, "class=\"band\""), 4u);
  EXPECT_FALSE(has(dom.substr(dom.find("<svg")), "NaN"));
  EXPECT_TRUE(has(dom, "What differs"));
}

TEST(Comparison, OfDifferentDataWarns) {
  EXPECT_TRUE(compare({run_of("a", config_of("sgp")), run_of("b", config_of("d-psgd"))}).warnings.empty());
  EXPECT_TRUE(compare({run_of("a", with(config_of("sgp"), "data", "imagefolder:p")),
                       run_of("b", with(config_of("sgd"), "data", "imagefolder:p/"))})
                  .warnings.empty());
  const auto warnings =
      compare({run_of("a", config_of("sgp")), run_of("b", with(config_of("sgd"), "data", "synthetic"))})
          .warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(has(warnings[0], "different data") && has(warnings[0], "mnist, synthetic")) << warnings[0];
}

// More runs than there are colors: colors and dashes together distinguish them, in the legend
// and in the charts.
TEST(Comparison, DrawsTwentyFourRunsDistinctlyWithOneLegend) {
  if (testing::browser().empty())
    GTEST_SKIP() << "no chromium, chromium-browser or google-chrome is installed";
  const ScratchDir dir;
  std::vector<RunFiles> runs;
  for (int i = 0; i < 24; ++i) runs.push_back(run_of(text("r", i), config_of(text("row", i))));
  spill(dir / "page.html", compare(std::move(runs)).page +
                               "<script>document.querySelector('[data-run=row5]').dispatchEvent(new "
                               "Event('pointerenter'))</script>");
  const std::string dom = testing::drawn(dir / "page.html", dir);
  EXPECT_EQ(count(dom, "class=\"key columns\""), 1u);
  const auto styles_of = [&](const std::string& mark, size_t from, size_t most) {
    std::set<std::string> found;
    for (size_t at = from; most-- > 0 && (at = dom.find(mark, at)) != std::string::npos; ++at) {
      const size_t style = dom.find("style=\"stroke: ", at), end = dom.find('"', style + 7);
      found.insert(dom.substr(style + 7, end - style - 7));
    }
    return found;
  };
  const auto in_legend = styles_of("<svg class=\"swatch\"", dom.find("key columns"), 24),
             in_chart = styles_of("<path class=\"curve", dom.find("role=\"application\""), 24);
  EXPECT_EQ(in_legend.size(), 24u);
  EXPECT_EQ(in_chart, in_legend);
  EXPECT_EQ(count(dom, "class=\"curve lit\""), 4u);  // row5, in every chart
  EXPECT_TRUE(has(dom, "class=\"focused\""));
}

TEST(Comparison, IsMadeByTheProgram) {
  const Workplace w;
  leave_run(w.path() / "runs/a", run_of("", config_of("sgp")));
  leave_run(w.path() / "runs/b", run_of("", config_of("d-psgd")));
  const Ended e = w.run("$TRAIN --compare runs/a runs/b --output both.html");
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_TRUE(has(e.out, "d-psgd") && has(e.out, "both.html")) << e.out;
  EXPECT_TRUE(has(w.read("both.html"), "2 runs compared"));
  EXPECT_FALSE(has(e.out, "warning")) << e.out;
  leave_run(w.path() / "runs/c", run_of("", with(config_of("sgd"), "data", "cifar10")));
  EXPECT_TRUE(has(w.run("$TRAIN --compare runs").out, "warning: These runs were trained on different data"));
  EXPECT_EQ(w.run("$TRAIN --compare nothing").status, 2);
  EXPECT_TRUE(has(w.run("$TRAIN --compare runs --lr 0.1").err, "--lr does not go with --compare"));
  EXPECT_TRUE(has(w.run("$TRAIN --compare runs --output runs").err, "is a directory"));
}

}  // namespace
}  // namespace skein::apps
