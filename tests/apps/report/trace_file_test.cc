// --trace: a timeline that agrees with the figures, is valid however the run ends, and can be drawn.
#include "apps/report/trace_file.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "comm/meter.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using comm::Track;
using nlohmann::json;
using testing_programs::Ended;
using testing_programs::Workplace;

const std::string kTiny =
    "timeout 100 $TRAIN --data synthetic:12x12x1,classes=3,train=96,test=30 --model small-cnn --batch-size 8 "
    "--threads 1 ";

std::vector<json> spans_in(const std::string& file) {
  std::vector<json> spans;
  const json trace = json::parse(file);
  for (const json& e : trace["traceEvents"])
    if (e["ph"] == "X") spans.push_back(e);
  return spans;
}

// Checks that no spans of a thread overlap; returns how often each name occurs per worker.
std::map<std::pair<int, std::string>, int> checked(const std::vector<json>& spans) {
  std::map<std::pair<int, int>, double> end;
  std::map<std::pair<int, std::string>, int> count;
  for (const json& e : spans) {
    double& last = end[{e["pid"].get<int>(), e["tid"].get<int>()}];
    EXPECT_GE(e["ts"].get<double>(), last - 0.01) << e;
    EXPECT_GE(e["dur"].get<double>(), 0) << e;
    last = e["ts"].get<double>() + e["dur"].get<double>();
    ++count[{e["pid"].get<int>(), e["name"].get<std::string>()}];
  }
  return count;
}

double hidden_share(const std::vector<json>& spans) {
  std::map<int, comm::Cover> flights;
  double waited = 0, in_flight = 0;
  for (const json& e : spans) {
    const double begin = e["ts"], seconds = e["dur"];
    if (e["cat"] != "compute") flights[e["pid"]].add(begin, begin + seconds);
    if (e["cat"] == "waiting") waited += seconds;
  }
  for (const auto& [worker, cover] : flights) in_flight += cover.length();
  return 1 - waited / in_flight;
}

TEST(Trace, ShowsWhatEachWorkerDidAndFitsTheSummary) {
  for (const std::string algorithm : {"sgp", "d-psgd", "allreduce"}) {
    const Workplace w;
    const Ended e =
        w.run(kTiny + "--steps 12 --workers 2 --output out --trace trace.json --algorithm " + algorithm);
    ASSERT_EQ(e.status, 0) << e.err;
    const auto spans = spans_in(w.read("trace.json"));
    auto count = checked(spans);
    for (int worker : {0, 1}) {
      for (const char* work : {"data", "forward", "backward"}) EXPECT_EQ((count[{worker, work}]), 12) << work;
      EXPECT_GE((count[{worker, "update"}]), 12);
      EXPECT_GE((count[{worker, "evaluate"}]), 1);
    }
    const json summary = json::parse(w.read("out/summary.json"));
    EXPECT_NEAR(summary["hidden_share"].get<double>(), hidden_share(spans), 1e-3) << algorithm;
    // Two workers: each sends the other all its parameters, or half of them twice, and little else.
    EXPECT_NEAR(summary["bytes_per_step"].get<double>() / (4 * summary["parameters"].get<double>()), 1, 0.1)
        << algorithm;
  }
}

TEST(Trace, OfOneWorkerIsItsWork) {
  const Workplace w;
  ASSERT_EQ(w.run(kTiny + "--steps 5 --output out --trace trace.json").status, 0);
  auto count = checked(spans_in(w.read("trace.json")));
  EXPECT_EQ((count[{0, "forward"}]), 5);
  EXPECT_EQ((count[{0, "message"}]), 0);
  EXPECT_FALSE(json::parse(w.read("out/summary.json")).contains("hidden_share"));
}

TEST(Trace, IsWholeAfterCtrlC) {
  const Workplace w;
  const Ended e =
      w.run(kTiny +
            "--epochs 100000 --checkpoint-every 0 --eval-every 0 --workers 2 --algorithm sgp --output out "
            "--trace trace.json --log-every 1 & P=$!; for i in $(seq 600); do grep -qs loss "
            "out/metrics.jsonl && break; sleep 0.05; done; cp trace.json before.json; "
            "kill -INT $(pgrep -P $P); wait $P");
  EXPECT_EQ(e.status, 130) << e.out << e.err;
  EXPECT_TRUE(spans_in(w.read("before.json")).empty());  // the file of a killed run is valid
  const auto spans = spans_in(w.read("trace.json"));
  auto count = checked(spans);
  EXPECT_GT((count[{0, "forward"}]), 0);
  EXPECT_EQ((count[{0, "forward"}]), (count[{1, "forward"}]));
}

TEST(Trace, ThatCannotBeWrittenIsRefusedBeforeTraining) {
  const Workplace w;
  const Ended e = w.run(kTiny + "--steps 5 --output out --trace nowhere/trace.json");
  EXPECT_EQ(e.status, 1);
  EXPECT_NE(e.err.find("nowhere/trace.json"), std::string::npos) << e.err;
  EXPECT_FALSE(w.has("out"));
}

TEST(Trace, CutsWorkAndWaitsOutOfAStepAndGivesTransfersLanes) {
  const std::string events = apps::trace_events(3,
                                                {{Track::kCompute, "forward", 1.1, 1.4},
                                                 {Track::kWaiting, "message", 1.6, 1.7, 0, -1, 2},
                                                 {Track::kTransfer, "message", 1.3, 1.7, 0, 40, 2},
                                                 {Track::kTransfer, "message", 1.5, 1.8, 1, 40, 2},
                                                 {Track::kTransfer, "message", 1.75, 1.9, 2, 40, 2},
                                                 {Track::kCompute, apps::kFrame, 1, 2, 0}},
                                                1);
  const json all = json::parse("[" + events.substr(0, events.rfind(',')) + "]");
  std::vector<std::pair<int, int>> updates, lanes;  // milliseconds; lane and begin
  for (const json& e : all) {
    EXPECT_EQ(e["pid"], 3);
    if (e["ph"] != "X") continue;
    const int begin = int(e["ts"].get<double>() / 1000 + 0.5),
              length = int(e["dur"].get<double>() / 1000 + 0.5);
    if (e["name"] == "update") updates.emplace_back(begin, begin + length);
    if (e["cat"] == "transfer") lanes.emplace_back(e["tid"], begin);
  }
  EXPECT_EQ(updates, (std::vector<std::pair<int, int>>{{0, 100}, {400, 600}, {700, 1000}}));
  EXPECT_EQ(lanes, (std::vector<std::pair<int, int>>{{3, 300}, {4, 500}, {3, 750}}));
}

}  // namespace
}  // namespace skein
