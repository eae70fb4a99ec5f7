// --resume auto: a run begins, or goes on.
#include "apps/beginning.h"

#include <gtest/gtest.h>

#include "tests/programs/tiny_training.h"

namespace skein {
namespace {

using testing_programs::Ended;
using testing_programs::expect_has;
using testing_programs::Workplace;

const std::string kRun = std::string(kTiny) + "--threads 1 ";

TEST(ResumeAuto, BeginsARunAndThenGoesOnWithIt) {
  const Workplace w;
  const std::string line = kRun + "--output out --resume auto ";
  Ended e = w.run(line + "--steps 4");
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_EQ(e.out.find("going on from"), std::string::npos) << e.out;
  e = w.run(line + "--steps 8");
  ASSERT_EQ(e.status, 0) << e.err;
  expect_has(e.out, "going on from out/checkpoints/step-00000004");
  e = w.run(line + "--steps 8");  // a job that is started again although it is done
  EXPECT_EQ(e.status, 0) << e.err;
}

TEST(ResumeAuto, BeginsAnewWhereNoCheckpointWasReached) {
  const Workplace w;
  w.write("out/metrics.jsonl", "{\"event\":\"run\",\"step\":0}\n");
  EXPECT_EQ(w.run(kRun + "--output out --steps 4").status, 2);
  const Ended e = w.run(kRun + "--output out --steps 4 --workers 2 --algorithm sgp --resume auto");
  EXPECT_EQ(e.status, 0) << e.err;
}

// The same command line serves the first start and all others, also when it overrides a file.
TEST(ResumeAuto, TakesTheCommandLineOverAFileAlsoOfWhatARunCannotChange) {
  const Workplace w;
  w.write("recipe.toml", "batch-size = 32\nmodel = \"small-cnn\"\n");
  const std::string line = kRun + "--config recipe.toml --output out --resume auto --steps ";
  EXPECT_EQ(w.run(line + "2").status, 0);
  const Ended e = w.run(line + "4");
  EXPECT_EQ(e.status, 0) << e.err;
  expect_has(e.out, "going on from");
}

TEST(ResumeAuto, MustKnowWhere) {
  expect_has(Workplace().run(kRun + "--resume auto").err, "--resume auto needs --output");
}

}  // namespace
}  // namespace skein
