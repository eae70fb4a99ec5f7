// Several runs on the same axes: their groups, names, figures, and the page.
#include "apps/report/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

#include "apps/report/run_figures.h"
#include "tests/support/browser.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using testing::count;
using testing::has;
using testing::message_of;
using testing::ScratchDir;
using testing::slurp;
using testing::spill;
using testing_programs::Ended;
using testing_programs::Workplace;

Json config_of(const std::string& algorithm, int seed = 1) {
  return {{"model", "mlp"}, {"data", "mnist"}, {"algorithm", algorithm}, {"workers", 4},
          {"lr", 0.5},      {"seed", seed},    {"nesterov", true},       {"output", "somewhere"}};
}

// A run evaluated at steps 100, 200 and 300, ten seconds and 8 MB apart, with the given accuracies.
RunFiles run_of(const std::string& directory, const Json& config,
                const std::vector<double>& top1 = {50, 70, 80}) {
  std::string lines = Json{{"event", "run"}, {"step", 0}, {"workers", 4}, {"config", config}}.dump() + '\n';
  for (size_t i = 0; i < top1.size(); ++i) {
    const int step = 100 * int(i + 1);
    for (const char* kind : {"step", "eval"})
      lines += Json{{"event", kind},
                    {"step", step},
                    {"epoch", i + 1.0},
                    {"seconds", 10.0 * double(i + 1)},
                    {"bytes", 8e6 * (i + 1.0)},
                    {"loss", 1.0},
                    {"loss_min", 0.5},
                    {"loss_max", 2},
                    {"top1", top1[i]}}
                   .dump() +
               '\n';
  }
  RunFiles run = parse_run(lines, "");
  run.directory = directory;
  return run;
}

std::vector<std::string> labels_of(const std::vector<Json>& configs) {
  std::vector<RunFiles> runs;
  for (size_t i = 0; i < configs.size(); ++i)
    runs.push_back(run_of(text("runs/", char('a' + i)), configs[i]));
  std::vector<std::string> labels;
  for (const RunGroup& g : group_runs(std::move(runs))) labels.push_back(g.label);
  return labels;
}

using Labels = std::vector<std::string>;

Json with(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return config;
}

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
