// The few steps that the report shows: which ones, which of their spans are kept, and the file
// that a run writes.
#include "apps/report/timeline.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/report/trace_file.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

using comm::Span;
using comm::Track;
using testing_programs::Ended;
using testing_programs::Workplace;

Span frame(double begin, double end, int64_t step) { return {Track::kCompute, kFrame, begin, end, step}; }

TEST(Timeline, TheLatestStepsWithNothingBetweenThemAreTypical) {
  const std::vector<Span> spans = {
      frame(0, 1, 0), frame(1, 2, 1), frame(2, 3, 2), frame(3, 4, 3), {Track::kCompute, "evaluate", 4, 8},
      frame(8, 9, 4), frame(9, 10, 5)};
  const auto e = typical_steps(spans);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->first_step, 1);
  EXPECT_EQ(e->last_step, 3);
  EXPECT_EQ(e->begin, 1);
  EXPECT_EQ(e->end, 4);
}

TEST(Timeline, OfVeryManySpansFewerStepsAreShown) {
  std::vector<Span> spans;
  for (int k = 0; k < 5; ++k) {
    spans.push_back(frame(k, k + 1, k));
    for (int i = 0; i < 150; ++i) spans.push_back({Track::kTransfer, "message", k + i * 0.001, k + 0.5});
  }
  EXPECT_EQ(typical_steps(spans)->first_step, 3);
  EXPECT_EQ(typical_steps(spans)->last_step, 4);
  EXPECT_FALSE(typical_steps({}));
}

TEST(Timeline, SpansAreCutToTheExcerptAndFramesToWhatIsLeftOfThem) {
  const Json all = spans_within({frame(1, 2, 7),
                                 {Track::kCompute, "forward", 1.25, 1.5},
                                 {Track::kTransfer, "message", 0.5, 1.75, 7, 40, 2},
                                 {Track::kWaiting, "message", 3, 4}},
                                1, 2);
  ASSERT_EQ(all.size(), 4u) << all;
  EXPECT_EQ(all[1], Json::parse(R"(["compute", "update", 0.0, 0.25, 7, -1, -1])"));
  EXPECT_EQ(all[0], Json::parse(R"(["transfer", "message", 0.0, 0.75, 7, 2, 40])"));
  EXPECT_EQ(all[2], Json::parse(R"(["compute", "forward", 0.25, 0.25, -1, -1, -1])"));
  EXPECT_EQ(all[3], Json::parse(R"(["compute", "update", 0.5, 0.5, 7, -1, -1])"));
}

TEST(Timeline, ARunLeavesOneOfAllItsWorkers) {
  const Workplace w;
  const Ended e = w.run(
      "$TRAIN --data synthetic:8x8x1,classes=3,train=64,test=30 --model mlp --batch-size 4 --epochs 6 "
      "--workers 2 "
      "--algorithm sgp --log-every 1 --output a");
  ASSERT_EQ(e.status, 0) << e.err;
  const Json t = Json::parse(w.read("a/timeline.json")), s = Json::parse(w.read("a/summary.json"));
  EXPECT_EQ(t["steps"][1].get<int>() - t["steps"][0].get<int>(), 2);
  ASSERT_EQ(t["workers"].size(), 2u);
  for (const Json& worker : t["workers"]) {
    double busy = 0;
    for (const Json& span : worker["spans"]) {
      EXPECT_GE(span[2], 0.0);
      EXPECT_LE(span[2].get<double>() + span[3].get<double>(), t["seconds"].get<double>() + 1e-6);
      if (t["tracks"][span[0].get<size_t>()] != "transfer") busy += span[3].get<double>();
    }
    EXPECT_GT(busy, 0);
    EXPECT_LE(busy, t["seconds"].get<double>() * 1.001);  // one thread does one thing at a time
  }
  ASSERT_EQ(s["seconds_by_worker"]["forward"].size(), 2u);
  EXPECT_EQ(s["seconds_by_worker"]["forward"][0], s["seconds_by_work"]["forward"]);
  // The bytes sent up to each step event; the last agrees with the summary.
  std::istringstream lines(w.read("a/metrics.jsonl"));
  double bytes = 0, before = -1, waits = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json j = Json::parse(line);
    if (j["event"] != "step") continue;
    bytes = j["bytes"];
    EXPECT_GE(bytes, before);
    before = bytes;
    EXPECT_LE(j["peer_wait_min"], j["peer_wait"]);
    EXPECT_GE(j["peer_wait_max"], j["peer_wait"]);
    ++waits;
  }
  EXPECT_EQ(waits, 48);
  EXPECT_NEAR(bytes, s["bytes_per_step"].get<double>() * 48, 1);
}

}  // namespace
}  // namespace skein::apps
