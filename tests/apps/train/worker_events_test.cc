// What happens to a run's workers: what is written of it, when, and how often.
#include "apps/train/worker_events.h"

#include <gtest/gtest.h>

#include <latch>

#include "comm/communicator/world_of_one.h"
#include "tests/support/parts.h"

namespace skein::apps {
namespace {

using testing_programs::expect_has;

TEST(WorkerEvents, AWorkerThatIsLostIsNotedOnce) {
  const Workplace w;
  auto world = comm::local_world(2);
  std::latch begun(2);
  comm::on_threads(2, [&](comm::Rank me) {
    comm::Communicator all(*world[size_t(me)], {.deadline = 20});
    Config c = small_config();
    c.algorithm = "local-sgd";
    Parts p(all, c, w.path() / "run", true);
    begun.arrive_and_wait();
    if (me == 1) return;
    p.record.workers().note_losses();
    EXPECT_TRUE(p.record.workers().lost().empty());
    world[0]->mailbox().lose(1, "its process has ended", true);
    p.run.k = 4;
    p.record.workers().note_losses();
    p.record.workers().note_losses();
    ASSERT_EQ(p.record.workers().lost().size(), 1u);
    EXPECT_EQ(p.record.workers().lost()[0].step, 4);
    EXPECT_EQ(p.record.workers().lost()[0].left, 1);
    const std::vector<Json> lost = events(w.path() / "run", "lost");
    ASSERT_EQ(lost.size(), 1u);
    EXPECT_EQ(lost[0]["worker"], 1);
    expect_has(p.said(), "worker 1 is lost: its process has ended; 1 continues");
  });
}

TEST(WorkerEvents, AChangeOfMembershipIsCompleteWithTheNextStep) {
  const Workplace w;
  comm::WorldOfOne alone;
  RunOnPaper p(alone, small_config());
  const std::string directory = w.path() / "run";
  std::filesystem::create_directories(directory);
  EventLog log;
  log.open(directory, -1, false);
  WorkerEvents workers(p.run, log);
  EXPECT_EQ(workers.at_first(), 1);
  workers.end_step();
  EXPECT_TRUE(events(directory, "membership").empty()) << "none is under way";
  Legacy legacy;
  legacy.workers_at_first = 4, legacy.workers_before = 3;
  legacy.left_at = clock_seconds() - 5;
  legacy.changes.resize(2);
  workers.continue_with(legacy, 0.5);
  EXPECT_EQ(workers.at_first(), 4);
  expect_has(p.said(), "whose sum was 3, 0.5 went with the lost");
  workers.end_step(), workers.end_step();
  EXPECT_EQ(events(directory, "membership").size(), 1u);
  ASSERT_EQ(workers.changes().size(), 2u);
  EXPECT_GE(workers.changes()[1].healed, 5);
  EXPECT_EQ(workers.changes()[1].weight_lost, 0.5);
  EXPECT_EQ(workers.changes()[0].weight_lost, 0);
  WorkerFigures figures;
  workers.describe(figures);
  EXPECT_EQ(figures.changes.size(), 2u);
  EXPECT_FALSE(figures.shares);
}

TEST(WorkerEvents, SharesThatWereGivenAreNoNews) {
  const Workplace w;
  comm::WorldOfOne alone;
  RunOnPaper p(alone, small_config());
  EventLog closed;
  WorkerEvents workers(p.run, closed);
  workers.note_shares({3, 5}, {}, "given");
  EXPECT_EQ(p.said(), "");
  workers.note_shares({2, 6}, {10, 30}, "the speeds have changed");
  expect_has(p.said(), "by 10 and 30 images/s (the speeds have changed)");
  WorkerFigures figures;
  workers.describe(figures);
  ASSERT_TRUE(figures.shares);
  EXPECT_EQ(figures.shares->shares, (std::vector<int64_t>{2, 6}));
}

}  // namespace
}  // namespace skein::apps
