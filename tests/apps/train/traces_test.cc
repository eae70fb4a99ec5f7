// The trace of a run: complete for --trace, else the latest steps.
#include "apps/train/traces.h"

#include <gtest/gtest.h>

#include "comm/communicator/world_of_one.h"
#include "tests/support/parts.h"

namespace skein::apps {
namespace {

// Records consecutive past steps of a millisecond.
void walk(Traces& traces, Run& run, int64_t steps) {
  const double begin = clock_seconds() - 10;
  for (; run.k < steps; ++run.k) {
    traces.before_step();
    traces.add_step({begin + 1e-3 * double(run.k), begin + 1e-3 * double(run.k + 1)});
  }
}

// The thirty-third step begins another trace.
TEST(Traces, TheLatestStepsAreShownWhereverOneTraceEnds) {
  for (const int64_t steps : {3, 32, 33, 34, 100}) {
    comm::WorldOfOne alone;
    RunOnPaper paper(alone, {});
    Traces traces(paper.run);
    traces.start();
    walk(traces, paper.run, steps);
    EXPECT_EQ(traces.timeline()["steps"], Json({steps - 3, steps - 1}));
  }
}

TEST(Traces, WithATraceFileAllStepsAreKeptAndOtherWorkBetweenThem) {
  const Workplace w;
  comm::WorldOfOne alone;
  Config c;
  c.trace = w.path() / "trace.json";
  RunOnPaper paper(alone, c);
  Traces traces(paper.run);
  traces.open();
  EXPECT_TRUE(w.has("trace.json"));
  traces.start();
  walk(traces, paper.run, 100);
  double seconds = 0;
  { const Timed t = traces.timed(seconds, "evaluate"); }
  EXPECT_GT(seconds, 0);
  traces.write(alone);
  const std::string file = w.read("trace.json");
  size_t frames = 0;
  for (size_t at = 0; (at = file.find("\"update\"", at)) != std::string::npos; ++at) ++frames;
  EXPECT_EQ(frames, 100u);
  testing_programs::expect_has(file, "\"evaluate\"");
}

TEST(Traces, WithoutATraceFileNoneIsWritten) {
  const Workplace w;
  comm::WorldOfOne alone;
  RunOnPaper paper(alone, {});
  Traces traces(paper.run);
  traces.open();
  traces.start();
  walk(traces, paper.run, 5);
  traces.write(alone);
  EXPECT_TRUE(std::filesystem::is_empty(w.path()));
}

}  // namespace
}  // namespace skein::apps
