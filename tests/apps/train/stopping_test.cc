// Workers stop at one step, whichever of them is asked.
#include "apps/train/stopping.h"

#include <gtest/gtest.h>

#include <thread>

#include "comm/communicator/world_of_one.h"
#include "comm/membership/council.h"
#include "tests/support/parts.h"
#include "tests/support/sim.h"

namespace skein::apps {
namespace {

Config config_by(const std::string& algorithm) {
  Config c;
  c.algorithm = algorithm;
  return c;
}

Setup setup_of_member(const comm::Communicator& comm, comm::Council& council) {
  Setup s;
  s.place = place_of(comm, &council), s.alone = false;
  s.steps_per_epoch = 10, s.total_steps = 1000000;
  return s;
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

// A message takes 0.4 s, eight times as long as a step. Only the first two answers are waited for, which
// are due a step after their questions.
TEST(Stopping, AskingTakesNoTime) {
  comm::sim::World world({.weather = {.latency = 0.4}, .keeps_log = false});
  double took = 0;
  comm::sim::populate(world, 3, [&](comm::Communicator& comm) {
    RunOnPaper paper(comm, config_by("local-sgd"));
    Stopping stopping(paper.run, [] {});
    comm.barrier();
    const double began = world.now();
    stopping.begin();
    for (; paper.run.k < 200; ++paper.run.k) {
      EXPECT_FALSE(stopping.here());
      comm::sim::spend(0.05);
    }
    took = std::max(took, world.now() - began);
    comm.barrier();
  });
  world.run();
  EXPECT_NEAR(took, 10 + 2 * (0.4 - 0.05), 1e-6);
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

// Worker 0 is at step 60 and waits there for the other, as at the end of an epoch, when both are told to
// leave. Worker 1 needs longer to come there than it would wait before it left alone.
TEST(Stopping, AnAsynchronousWorkerThatWaitsForASlowerOneTellsItThatItIsToLeave) {
  comm::View v;
  for (comm::MemberId m : {10, 11}) v.members.push_back({m, "", true});
  std::vector<int64_t> ended(2);
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    comm::Council council(comm.transport(),
                          {.me = v.members[size_t(comm.rank())].id, .now = v, .card = "", .is_gone = {}});
    RunOnPaper paper(comm, config_by("ad-psgd"), setup_of_member(comm, council), ".", false);
    ASSERT_TRUE(paper.run.asynchronous);
    paper.run.leave = [] { return true; };
    Stopping stopping(paper.run, [] {});
    stopping.begin();
    if (comm.rank() == 0) {
      paper.run.k = 60;
      EXPECT_TRUE(stopping.meet());
      EXPECT_TRUE(stopping.agreed());
    }
    for (; !stopping.here(); ++paper.run.k) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ended[size_t(comm.rank())] = paper.run.k;
    EXPECT_TRUE(stopping.meet());
  });
  EXPECT_EQ(ended, std::vector<int64_t>(2, 60));
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
