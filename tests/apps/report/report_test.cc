// The report: what its page holds.
#include "apps/report/report.h"

#include <gtest/gtest.h>

#include "tests/apps/report/run_pages.h"

namespace skein::apps {
namespace {

using testing::has;
using testing::message_of;
using testing::ScratchDir;
using testing::slurp;
using testing::spill;

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

TEST(Report, SaysInWordsWhatWasRefused) {
  const ScratchDir dir;
  write_run(dir.path(), 4);
  Json summary = Json::parse(slurp(dir / "summary.json"));
  summary["environment"].update(
      {{"refused_callers", 2}, {"forged_messages", 1}, {"truncated_messages", 0}, {"refused_datagrams", 40}});
  spill(dir / "summary.json", summary.dump());
  const Json d = data_of(slurp(write_report(dir.path())));
  const std::string words =
      "2 callers without this job's key, 1 forged message, 40 forged or replayed datagrams";
  EXPECT_EQ(d["refused"]["count"], 43);
  EXPECT_EQ(d["refused"]["words"], words);
  EXPECT_EQ(d["environment"]["refused from the network"], words);
  EXPECT_FALSE(d["environment"].contains("refused_callers")) << "said once";
}

TEST(Report, ARunWithoutASummaryIsRunning) {
  const ScratchDir dir;
  MetricsLog log(dir.path());
  log.write(RunEvent{.config = {{"model", "mlp"}}});
  log.write(step_of_run(5, 1));
  spill(dir / "metrics.jsonl", slurp(dir / "metrics.jsonl") + "{\"event\":\"st");  // being written
  const Json d = data_of(slurp(write_report(dir.path())));
  EXPECT_EQ(d["state"], "running");
  EXPECT_EQ(d["series"]["step"]["loss"].size(), 1u);
}

TEST(Report, SaysWhichWorkersWereLostAndWhen) {
  const ScratchDir dir;
  MetricsLog log(dir.path());
  log.write(RunEvent{.config = {{"model", "mlp"}}, .workers = 4});
  log.write(step_of_run(5, 4));
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
  log.write(step_of_run(5, 1));
  EXPECT_EQ(data_of(slurp(write_report(dir.path())))["state"], "interrupted");
  log.write(step_of_run(10, 1));  // resumed
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

TEST(Report, TellsWhatWasChosenFromWhatWasLeft) {
  const ScratchDir dir;
  write_run(dir.path(), 4);
  const Json data = data_of(slurp(write_report(dir.path())));
  const Json &config = data["config"], &defaults = data["defaults"];
  for (const char* chosen : {"algorithm", "workers", "lr"})
    EXPECT_NE(config[chosen], defaults[chosen]) << chosen;
  for (const char* left : {"momentum", "seed"}) EXPECT_EQ(config[left], defaults[left]) << left;
}

}  // namespace
}  // namespace skein::apps
