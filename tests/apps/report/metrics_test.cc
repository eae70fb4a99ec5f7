// Events and the summary.
#include "apps/report/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tests/support/files.h"

namespace skein::apps {
namespace {

using testing::has;
using testing::message_of;
using testing::ScratchDir;
using testing::slurp;
using testing::spill;

std::vector<Json> events(const std::string& dir) {
  std::istringstream in(slurp(dir + "/metrics.jsonl"));
  std::vector<Json> all;
  for (std::string line; std::getline(in, line);) all.push_back(Json::parse(line));
  return all;
}

StepEvent step_event(int64_t step) {
  StepEvent e;
  e.step = step, e.epoch = double(step) / 100, e.seconds = double(step) * 0.5,
  e.loss = 1.0 / double(step + 1);
  return e;
}

TEST(Metrics, EventsAreLinesOfJson) {
  const ScratchDir dir;
  {
    MetricsLog log(dir.path());
    log.write(RunEvent{.config = {{"model", "mlp"}}, .environment = {{"skein", "0.1"}}, .workers = 4});
    StepEvent s = step_event(10);
    s.loss = Spread(0.5, 0.25, 0.75);
    log.write(s);
    EpochEvent epoch;
    epoch.step = 100, epoch.epoch = 1, epoch.top1 = 81.5;
    log.write(epoch);
    EvalEvent e;
    e.step = 100, e.top1 = 80, e.worker_top1 = Spread(79, 78, 80), e.consensus_distance = 0.125;
    log.write(e);
    log.write(LostEvent{.step = 120, .worker = 2, .left = 3, .why = "its process has ended"});
  }
  const std::vector<Json> all = events(dir.path());
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0]["event"], "run");
  EXPECT_EQ(all[0]["config"]["model"], "mlp");
  EXPECT_EQ(all[1]["loss"], 0.5);
  EXPECT_EQ(all[1]["loss_min"], 0.25);
  EXPECT_EQ(all[1]["loss_max"], 0.75);
  EXPECT_FALSE(all[1].contains("top1_min"));
  EXPECT_EQ(all[2]["event"], "epoch");
  EXPECT_EQ(all[2]["top1"], 81.5);
  EXPECT_EQ(all[3]["worker_top1_min"], 78);
  EXPECT_EQ(all[3]["consensus_distance"], 0.125);
  EXPECT_EQ(all[4]["event"], "lost");
  EXPECT_EQ(all[4]["worker"], 2);
  EXPECT_EQ(all[4]["why"], "its process has ended");
}

TEST(Metrics, NumbersThatJsonLacksAreNull) {
  const ScratchDir dir;
  MetricsLog log(dir.path());
  StepEvent e = step_event(1);
  e.loss = Spread(NAN, -INFINITY, INFINITY);
  log.write(e);
  const Json j = events(dir.path()).at(0);
  EXPECT_TRUE(j["loss"].is_null() && j["loss_min"].is_null() && j["loss_max"].is_null());
}

TEST(Metrics, ResumeDropsWhatCameAfterAndAppends) {
  const ScratchDir dir;
  {
    MetricsLog log(dir.path());
    log.write(RunEvent{});
    for (int64_t k : {10, 20, 30}) log.write(step_event(k));
  }
  spill(dir / "metrics.jsonl", slurp(dir / "metrics.jsonl") + "{\"event\":\"step\",\"st");  // torn by a crash
  {
    MetricsLog log(dir.path(), 20);
    EXPECT_EQ(log.seconds(), 10);
    log.write(step_event(25));
  }
  std::vector<int64_t> steps;
  for (const Json& j : events(dir.path())) steps.push_back(j["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 10, 20, 25}));
}

TEST(Metrics, ALineThatIsNestedTooDeeplyIsDropped) {
  const ScratchDir dir;
  const std::string good = "{\"event\":\"step\",\"step\":3}\n", deep(200000, '[');
  spill(dir / "metrics.jsonl", good + "{\"step\":3,\"x\":" + deep + std::string(200000, ']') + "}\n");
  { const MetricsLog log(dir.path(), 5); }
  EXPECT_EQ(slurp(dir / "metrics.jsonl"), good);
}

TEST(Metrics, AFreshRunStartsAnew) {
  const ScratchDir dir;
  { MetricsLog(dir.path()).write(step_event(1)); }
  MetricsLog log(dir.path());
  EXPECT_EQ(log.seconds(), 0);
  EXPECT_TRUE(events(dir.path()).empty());
}

TEST(Metrics, AResumeIntoAnEmptyDirectoryIsNoError) {
  const ScratchDir dir;
  MetricsLog log(dir / "deep/new", 50);
  log.write(step_event(51));
  EXPECT_EQ(events(dir / "deep/new").size(), 1u);
}

TEST(Metrics, AnImpossibleDirectoryIsNamed) {
  const ScratchDir dir;
  spill(dir / "file", "");
  EXPECT_TRUE(has(message_of<BadFile>([&] { MetricsLog log(dir / "file/x"); }), dir / "file/x"));
}

TEST(Summary, HoldsWhatWasMeasuredAndNothingElse) {
  const ScratchDir dir;
  Summary s;
  s.model.top1 = 90.25, s.steps = 100, s.interrupted = true, s.model.hash = "ab", s.data.unreadable = 2;
  s.data.unreadable_names = {"\xff.jpg"};  // not UTF-8
  s.costs.seconds_by_work = {{"compute", 1.5}, {"data", 0.25}};
  s.config = {{"model", "mlp"}};
  write_summary(dir.path(), s);
  const Json j = Json::parse(slurp(dir / "summary.json"));
  EXPECT_EQ(j["top1"], 90.25);
  EXPECT_FALSE(j.contains("top5"));
  EXPECT_EQ(j["interrupted"], true);
  EXPECT_EQ(j["seconds_by_work"]["compute"], 1.5);
  EXPECT_EQ(j["unreadable"], 2);
  EXPECT_EQ(j["config"]["model"], "mlp");
  EXPECT_EQ(j["version"], SKEIN_VERSION);
}

TEST(Summary, HoldsPredictionsBesideWhatWasMeasured) {
  Summary s;
  EXPECT_FALSE(s.to_json().contains("predicted"));
  s.costs.images_per_second = 498, s.costs.bytes_per_step = 4e6;
  s.costs.predicted = Predicted{.images_per_second = 512, .bytes_per_step = 4.2e6};
  const Json j = s.to_json();
  for (const auto& [name, value] : j["predicted"].items()) EXPECT_TRUE(j.contains(name)) << name;
  EXPECT_EQ(j["predicted"].dump(), "{\"images_per_second\":512.0,\"bytes_per_step\":4200000.0}");
  const std::string words = in_words(s.costs, 61);
  EXPECT_TRUE(has(words, "498 images/s, 1:01 of training\n")) << words;
  EXPECT_TRUE(has(words, "predicted: 512 images/s, 4.2 MB a step; measured 2.7 % fewer images/s\n")) << words;
  s.costs.images_per_second = 640;
  EXPECT_TRUE(has(in_words(s.costs, 61), "measured 25.0 % more images/s\n"));
}

TEST(Summary, TheEnvironmentSaysWhatNumbersDependOn) {
  const Json e = describe_environment();
  for (const char* key : {"skein", "host", "system", "processor", "cores", "compiler"})
    EXPECT_TRUE(e.contains(key)) << key;
  EXPECT_GE(e["cores"], 1);
}

}  // namespace
}  // namespace skein::apps
