// The report: the page's contents, and whether a browser draws it.
#include "apps/report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/report/metrics.h"
#include "engine/random.h"
#include "tests/support/browser.h"
#include "tests/support/files.h"

namespace skein::apps {
namespace {

using testing::count;
using testing::has;
using testing::message_of;
using testing::ScratchDir;
using testing::slurp;
using testing::spill;

constexpr int64_t kPerEpoch = 235, kEpochs = 12;

StepEvent step_event(int64_t k, int workers) {
  const Draw draw{.seed = 3, .purpose = Purpose::kTest, .step = uint64_t(k)};
  const double t = double(k) / double(kPerEpoch * kEpochs), noise = draw.unit(0) - 0.5;
  StepEvent e;
  e.step = k, e.epoch = double(k) / kPerEpoch, e.seconds = 14 + double(k) * 0.055;
  const double loss = 0.18 + 2.1 * std::exp(-14 * t) + 0.15 * std::exp(-3 * t) + 0.12 * noise * (1.2 - t);
  e.loss = workers > 1 ? Spread(loss, loss - 0.05, loss + 0.06) : Spread(loss);
  e.top1 = 100 - 31 * loss;
  e.learning_rate = k < 235 ? 0.4 * double(k + 1) / 235 : 0.2 * (1 + std::cos(3.14159 * (t - 0.083) / 0.917));
  e.images_per_second = 9300 + 500 * (draw.unit(1) - 0.5) - (draw.unit(2) > 0.97 ? 1500 : 0);
  e.data_wait = 0.02 + 0.01 * draw.unit(3), e.peer_wait = 0.05 + 0.04 * draw.unit(4);
  if (workers > 1) e.bytes = 1e6 * double(k);
  return e;
}

constexpr const char* kTimeline =
    R"({"steps":[7,7],"seconds":0.05,"tracks":["compute","transfer","waiting"],"names":["forward","all_reduce"],
        "workers":[{"rank":0,"spans":[[0,0,0,0.03,-1,-1,-1],[1,1,0.01,0.035,7,1,1000],[2,1,0.03,0.015,7,1,-1]]},
                   {"rank":1,"spans":[[0,0,0,0.05,-1,-1,-1]]}]})";

// A run as the trainer would have written it.
void write_run(const std::string& dir, int workers) {
  const Json config = {{"model", "resnet20"},
                       {"data", "fashion-mnist"},
                       {"algorithm", workers > 1 ? "sgp" : "sgd"},
                       {"workers", workers},
                       {"batch-size", 256 / workers},
                       {"precision", "fp32"},
                       {"epochs", kEpochs},
                       {"lr", 0.4},
                       {"lr-schedule", "cosine"},
                       {"momentum", 0.9},
                       {"weight-decay", 0.0005},
                       {"seed", 1}};
  MetricsLog log(dir);
  log.write(RunEvent{.config = config,
                     .environment = describe_environment(),
                     .steps_per_epoch = kPerEpoch,
                     .total_steps = kPerEpoch * kEpochs,
                     .workers = workers});
  for (int64_t k = 5; k <= kPerEpoch * kEpochs; k += 5) {
    log.write(step_event(k, workers));
    if (k % kPerEpoch != 0) continue;
    const StepEvent s = step_event(k, workers);
    const double t = s.epoch / kEpochs;
    EvalEvent e;
    e.step = k, e.epoch = s.epoch, e.seconds = s.seconds + 1;
    e.loss = 0.24 + 0.5 * std::exp(-6 * t), e.top1 = 91.6 - 14 * std::exp(-4 * t), e.top5 = 99.8;
    if (workers > 1) e.worker_top1 = Spread(e.top1 - 0.7, e.top1 - 1.2, e.top1 - 0.3);
    if (workers > 1) e.consensus_distance = 0.02 * std::exp(-3 * t), e.bytes = s.bytes;
    log.write(e);
    if (k == 6 * kPerEpoch)
      log.write(RunEvent{.step = k,
                         .seconds = e.seconds,
                         .config = config,
                         .steps_per_epoch = kPerEpoch,
                         .workers = workers});
  }
  Summary s;
  s.steps = kPerEpoch * kEpochs, s.epochs = kEpochs, s.top1 = 91.34, s.top5 = 99.82, s.loss = 0.2413,
  s.best_top1 = 91.47;
  s.images_per_second = 9287, s.seconds = 171.3, s.workers = workers, s.parameters = 269434;
  s.seconds_by_work = {
      {"data", 3.2}, {"forward", 50}, {"backward", 92.1}, {"evaluate", 12.4}, {"checkpoint", 1.9}};
  if (workers > 1) {
    s.seconds_by_work.insert(s.seconds_by_work.begin() + 1, {"peers", 9.4});
    s.seconds_by_worker.assign(size_t(workers), {3, 9, 50, 92, 12, 2});
    spill(dir + "/timeline.json", kTimeline);
    s.hidden_share = 0.873, s.bytes_per_step = 1.0777e6;
    s.classes = {"geese", "swans", "</script>"};
    s.labels = {{10, 0, 90}, {50, 50, 0}, {0, 1, 0}, {7, 8, 9}};
  }
  s.hash = "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8";
  s.config = config, s.environment = describe_environment();
  write_summary(dir, s);
}

Json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(open) + open.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(Report, IsMadeFromTheFilesOfTheRunAlone) {
  const ScratchDir dir;
  write_run(dir.path(), 1);
  const std::string path = write_report(dir.path());
  EXPECT_EQ(path, dir / "report.html");
  const std::string first = slurp(path);
  const Json d = data_of(first);
  EXPECT_TRUE(has(first, "<title>resnet20 on fashion-mnist</title>"));
  EXPECT_EQ(d["state"], "finished");
  EXPECT_EQ(d["series"]["eval"]["top1"].size(), size_t(kEpochs));
  EXPECT_EQ(d["series"]["step"]["step"][0], 5);
  EXPECT_EQ(d["resumes"].size(), 1u);
  write_report(dir.path());
  EXPECT_EQ(slurp(path), first);
}

TEST(Report, NeedsNoNetwork) {
  const ScratchDir dir;
  write_run(dir.path(), 1);
  const std::string page = slurp(write_report(dir.path()));
  for (const char* part : {"src=", "<link", "@import", "url(http", "fetch(", "XMLHttpRequest"})
    EXPECT_FALSE(has(page, part)) << part;
  EXPECT_LT(page.size(), 400u << 10);
}

TEST(Report, ARunWithoutASummaryIsRunning) {
  const ScratchDir dir;
  MetricsLog log(dir.path());
  log.write(RunEvent{.config = {{"model", "mlp"}}});
  log.write(step_event(5, 1));
  spill(dir / "metrics.jsonl", slurp(dir / "metrics.jsonl") + "{\"event\":\"st");  // being written
  const Json d = data_of(slurp(write_report(dir.path())));
  EXPECT_EQ(d["state"], "running");
  EXPECT_EQ(d["series"]["step"]["loss"].size(), 1u);
}

TEST(Report, SaysWhichWorkersWereLostAndWhen) {
  const ScratchDir dir;
  MetricsLog log(dir.path());
  log.write(RunEvent{.config = {{"model", "mlp"}}, .workers = 4});
  log.write(step_event(5, 4));
  EXPECT_TRUE(data_of(slurp(write_report(dir.path())))["lost"].empty());
  log.write(LostEvent{.step = 5, .worker = 2, .left = 3, .why = "its process has ended"});
  log.write(LostEvent{.step = 5, .worker = 1, .left = 2, .why = "its process has ended"});
  const Json lost = data_of(slurp(write_report(dir.path())))["lost"];
  ASSERT_EQ(lost.size(), 2u);
  EXPECT_EQ(lost[1]["worker"], 1);
  EXPECT_EQ(lost[1]["step"], 5);
}

TEST(Report, ASummaryThatTheEventsHaveOvertakenDoesNotCount) {
  const ScratchDir dir;
  Summary s;
  s.steps = 5, s.interrupted = true;
  write_summary(dir.path(), s);
  MetricsLog log(dir.path());
  log.write(RunEvent{.config = {{"model", "mlp"}}});
  log.write(step_event(5, 1));
  EXPECT_EQ(data_of(slurp(write_report(dir.path())))["state"], "interrupted");
  log.write(step_event(10, 1));  // resumed
  EXPECT_EQ(data_of(slurp(write_report(dir.path())))["state"], "running");
}

TEST(Report, NamesFromOutsideCannotLeaveTheirPlace) {
  const std::string evil = "</script><script>alert(1)</script>";
  const std::string run = Json{{"event", "run"}, {"step", 0}, {"config", {{"model", evil}}}}.dump();
  const std::string page = render_report(parse_run(run, ""));
  EXPECT_FALSE(has(page, "<script>alert"));
  EXPECT_EQ(data_of(page)["config"]["model"], evil);
}

TEST(Report, LongRunsAreThinnedKeepingMeansAndExtremes) {
  std::string lines;
  for (int k = 1; k <= 100000; ++k)
    lines += text(R"({"event":"step","step":)", k, R"(,"loss":)", k % 2, R"(,"loss_max":)", k == 500 ? 9 : 2,
                  "}\n");
  const Json step = data_of(render_report(parse_run(lines, "")))["series"]["step"];
  EXPECT_LE(step["step"].size(), 1200u);
  EXPECT_EQ(step["step"].back(), 100000);
  for (const Json& v : step["loss"]) EXPECT_NEAR(v.get<double>(), 0.5, 0.01);
  EXPECT_EQ(std::count(step["loss_max"].begin(), step["loss_max"].end(), Json(9)), 1);
}

TEST(Report, MissingMetricsAreNamed) {
  const ScratchDir dir;
  EXPECT_TRUE(has(message_of<BadFile>([&] { write_report(dir.path()); }), "metrics.jsonl"));
}

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
TEST(Report, TickLabelsOfAShortRunDiffer) {
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

TEST(Report, TellsWhatWasChosenFromWhatWasLeft) {
  const ScratchDir dir;
  write_run(dir.path(), 4);
  const Json data = data_of(slurp(write_report(dir.path())));
  const Json &config = data["config"], &defaults = data["defaults"];
  for (const char* chosen : {"algorithm", "workers", "lr"})
    EXPECT_NE(config[chosen], defaults[chosen]) << chosen;
  for (const char* left : {"momentum", "seed"}) EXPECT_EQ(config[left], defaults[left]) << left;
}

TEST(Report, ShowsTheParametersOfLargeModelsInMillions) {
  if (testing::browser().empty()) GTEST_SKIP() << "no browser is installed";
  const std::string dom = drawn_with({{"parameters", 11178564}}, nullptr);
  EXPECT_TRUE(has(dom, "<b>11.2\u202fM</b>"));
  EXPECT_FALSE(has(dom, "11,178,564"));
}

TEST(Report, SplitsTheTimeOfAllWorkersInPaintsThatDiffer) {
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

TEST(Report, ShowsUnusualFilesAsATableAlsoOfOlderRuns) {
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

TEST(Report, ShowsClassesTheirConfusionsAndMistakes) {
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

TEST(Report, OfAThousandClassesShowsTheLowestAndStaysSmall) {
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

INSTANTIATE_TEST_SUITE_P(Report, InBrowser, ::testing::Values(1, 4));

}  // namespace
}  // namespace skein::apps
