// Workers stop at one step, whichever of them is asked.
#include "apps/train/stopping.h"

#include <gtest/gtest.h>

#include "comm/communicator/world_of_one.h"
#include "tests/support/parts.h"

namespace skein::apps {
namespace {

Config config_by(const std::string& algorithm) {
  Config c;
  c.algorithm = algorithm;
  return c;
}

// Takes steps until it should stop, and returns the step.
int64_t walk(Stopping& stopping, Run& run) {
  for (; !stopping.here(); ++run.k) CHECK(run.k < 1000000);
  return run.k;
}

TEST(Stopping, AWorkerAloneStopsWhereItIsAsked) {
  comm::WorldOfOne alone;
  RunOnPaper paper(alone, config_by("sgd"));
  paper.run.stop = [&] { return paper.run.k == 7; };
  Stopping stopping(paper.run, [] {});
  stopping.begin();
  EXPECT_EQ(walk(stopping, paper.run), 7);
}

TEST(Stopping, WorkersInStepStopAtOneStepWhoeverIsAsked) {
  for (int asked = 0; asked < 3; ++asked) {
    std::vector<int64_t> ended(3);
    comm::in_local_world(3, [&](comm::Communicator& comm) {
      RunOnPaper paper(comm, config_by("local-sgd"));
      paper.run.stop = [&] { return comm.rank() == asked && paper.run.k >= 4; };
      Stopping stopping(paper.run, [] {});
      stopping.begin();
      ended[size_t(comm.rank())] = walk(stopping, paper.run);
      EXPECT_TRUE(stopping.meet());
    });
    EXPECT_GE(ended[0], 4);
    EXPECT_EQ(ended, std::vector<int64_t>(3, ended[0])) << "worker " << asked << " is asked";
  }
}

// Worker r is at step 2 r when all are asked.
TEST(Stopping, AsynchronousWorkersGoOnToTheStepOfTheOneFurthestAhead) {
  std::vector<int64_t> ended(3);
  comm::in_local_world(3, [&](comm::Communicator& comm) {
    RunOnPaper paper(comm, config_by("ad-psgd"));
    ASSERT_TRUE(paper.run.asynchronous);
    paper.run.stop = [] { return true; };
    paper.run.k = 2 * comm.rank();
    Stopping stopping(paper.run, [] {});
    stopping.begin();
    ended[size_t(comm.rank())] = walk(stopping, paper.run);
    EXPECT_TRUE(stopping.agreed());
    EXPECT_TRUE(stopping.meet());
  });
  EXPECT_EQ(ended, std::vector<int64_t>(3, 4));
}

TEST(Stopping, AsynchronousWorkersThatNobodyAskedAreTold) {
  std::vector<int64_t> ended(2);
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    RunOnPaper paper(comm, config_by("ad-psgd"));
    paper.run.stop = [&] { return comm.rank() == 1 && paper.run.k >= 3; };
    Stopping stopping(paper.run, [] {});
    stopping.begin();
    while (!stopping.here()) {
      ++paper.run.k;
      std::this_thread::yield();
    }
    ended[size_t(comm.rank())] = paper.run.k;
    EXPECT_TRUE(stopping.meet());
  });
  EXPECT_GE(ended[0], 3);
  EXPECT_EQ(ended[0], ended[1]);
}

TEST(Stopping, AsynchronousWorkersMeetOnceAtAStepUntilTheyAreOthers) {
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    RunOnPaper paper(comm, config_by("ad-psgd"));
    int settled = 0;
    Stopping stopping(paper.run, [&] { ++settled; });
    stopping.begin();
    EXPECT_TRUE(stopping.meet());
    EXPECT_TRUE(stopping.meet());
    EXPECT_EQ(settled, 1);
    stopping.meet_again();
    EXPECT_TRUE(stopping.meet());
    EXPECT_EQ(settled, 2);
    EXPECT_FALSE(stopping.agreed());
  });
}

TEST(Stopping, WorkersInStepNeedNotMeet) {
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    RunOnPaper paper(comm, config_by("local-sgd"));
    Stopping stopping(paper.run, [] { FAIL() << "nothing is to be settled"; });
    if (comm.rank() == 0) { EXPECT_TRUE(stopping.meet()); }
  });
}

TEST(Stopping, AReplayedRunStopsOnlyWhereTheRecordedOneMet) {
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    Config c = config_by("ad-psgd");
    c.replay = "log";
    RunOnPaper paper(comm, c);
    paper.run.stop = [&] { return comm.rank() == 0; };
    Stopping stopping(paper.run, [] {});
    stopping.begin();
    for (; paper.run.k < 20; ++paper.run.k) EXPECT_FALSE(stopping.here());
    EXPECT_TRUE(stopping.meet());
    EXPECT_TRUE(stopping.agreed());
    EXPECT_TRUE(stopping.here());
  });
}

}  // namespace
}  // namespace skein::apps
