// EventLog: which files get which events, and what its seconds count from.
#include "apps/report/event_log.h"

#include <gtest/gtest.h>

#include "tests/support/parts.h"

namespace skein::apps {
namespace {

EpochEvent epoch_at(int64_t step, double seconds) {
  EpochEvent e;
  e.step = step, e.seconds = seconds;
  return e;
}

TEST(EventLog, WritesNothingWhileItIsClosedAndKnowsTheTime) {
  EventLog log;
  EXPECT_FALSE(log.is_open());
  EXPECT_EQ(log.elapsed(), 0);
  log.write(epoch_at(1, 0));
  log.start();
  EXPECT_TRUE(log.has_started());
  EXPECT_GE(log.elapsed(), 0);
}

TEST(EventLog, CountsTheSecondsOfEarlierRunsAndKeepsEventsForBothFiles) {
  const Workplace w;
  const std::string run = w.path() / "run";
  std::filesystem::create_directories(run);
  {
    EventLog log;
    log.open(run, -1, true);
    log.start();
    log.write(epoch_at(4, 100));
    log.write(LostEvent{.step = 4, .seconds = 100});
  }
  EXPECT_EQ(events(run, "epoch").size(), 1u);
  EXPECT_EQ(events(run, "lost").size(), 1u);
  int boards = 0;
  for (const auto& file : std::filesystem::directory_iterator(run))
    boards += file.path().filename().string().find("tfevents") != std::string::npos;
  EXPECT_EQ(boards, 1);
  EventLog later;
  later.open(run, 4, false);
  later.start();
  EXPECT_GE(later.elapsed(), 100);
  EXPECT_LT(later.elapsed(), 200);
}

}  // namespace
}  // namespace skein::apps
