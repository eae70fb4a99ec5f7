// The record of a run: events, lines, and numbers that it refuses.
#include "apps/train/record.h"

#include <gtest/gtest.h>

#include "comm/communicator/world_of_one.h"
#include "engine/vectors/vec.h"
#include "tests/support/parts.h"
#include "tests/support/peek.h"

namespace skein::apps {
namespace {

using testing_programs::expect_has;

TEST(Record, StepsAreLoggedAsOftenAsAskedForAndOverTheImagesSince) {
  const Workplace w;
  comm::WorldOfOne alone;
  Config c = small_config();
  c.log_every = 2;
  Parts p(alone, c, w.path() / "run");
  for (int i = 0; i < 5; ++i) p.step(), p.record.end_step();
  EXPECT_EQ(events(w.path() / "run", "run").size(), 1u);
  const std::vector<Json> steps = events(w.path() / "run", "step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0]["step"], 2);
  EXPECT_EQ(steps[1]["step"], 4);
  EXPECT_EQ(p.learning.gradient.meters().recent.images, 8);  // those of the fifth step
  EXPECT_EQ(p.learning.gradient.meters().total.images, 40);
}

// A step's event has the numbers of all workers of that step, whenever they come; flush() waits for them.
TEST(Record, AnEventIsOfAllWorkersAndWaitsForNone) {
  const Workplace w;
  comm::in_local_world(3, [&](comm::Communicator& comm) {
    Config c = small_config();
    c.algorithm = "local-sgd", c.log_every = 2;
    Parts p(comm, c, w.path() / "run");
    for (int i = 0; i < 5; ++i) p.step(), p.record.end_step();
    p.record.flush();
    comm.barrier();
  });
  const std::vector<Json> steps = events(w.path() / "run", "step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0]["step"], 2);
  EXPECT_EQ(steps[1]["step"], 4);
  EXPECT_LT(double(steps[0]["seconds"]), double(steps[1]["seconds"]));
  EXPECT_LE(double(steps[0]["loss_min"]), double(steps[0]["loss"]));
  EXPECT_LT(double(steps[0]["loss_min"]), double(steps[0]["loss_max"]));
}

TEST(Record, StepsThatAreReplayedAreLoggedOneStepLater) {
  const Workplace w;
  comm::WorldOfOne alone;
  Config c = small_config();
  c.log_every = 2, c.cuda_graphs = "on";
  Parts p(alone, c, w.path() / "run");
  for (int i = 0; i < 2; ++i) p.step(), p.record.end_step();
  EXPECT_TRUE(events(w.path() / "run", "step").empty());
  p.step(), p.record.end_step();
  ASSERT_EQ(events(w.path() / "run", "step").size(), 1u);
  EXPECT_EQ(events(w.path() / "run", "step")[0]["step"], 2);
  for (int i = 0; i < 1; ++i) p.step(), p.record.end_step();
  p.record.flush();
  EXPECT_EQ(events(w.path() / "run", "step").size(), 2u);
}

TEST(Record, ALossThatIsNoNumberEndsTheTraining) {
  const Workplace w;
  comm::WorldOfOne alone;
  Parts p(alone, small_config(), w.path() / "run");
  fill(p.learning.flat.x, NAN);
  p.step();
  try {
    p.record.end_step();
    FAIL() << "a loss of NaN was accepted";
  } catch (const Error& e) {
    expect_has(e.what(), "after step 1 ");
    expect_has(e.what(), "training has diverged");
    expect_has(e.what(), "no checkpoint was written yet");
  }
}

TEST(Record, OneWorkersBadNumbersAreRefusedByAll) {
  const Workplace w;
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    Config c = small_config();
    c.algorithm = "local-sgd";
    Parts p(comm, c, w.path() / "run");
    p.step();
    p.record.refuse_bad_numbers();
    if (comm.rank() == 1) p.learning.flat.x.data<float>()[0] = INFINITY;
    EXPECT_THROW(p.record.refuse_bad_numbers(), Error);
  });
}

TEST(Record, AnEpochIsOneEventAndOneLine) {
  const Workplace w;
  comm::WorldOfOne alone;
  Parts p(alone, small_config(), w.path() / "run");
  for (int i = 0; i < 7; ++i) p.step();
  p.record.read_losses();
  EXPECT_EQ(p.record.epoch().images, 52);
  p.record.close_epoch(p.record.epoch(), "  test loss 1.0");
  const std::vector<Json> epochs = events(w.path() / "run", "epoch");
  ASSERT_EQ(epochs.size(), 1u);
  EXPECT_EQ(epochs[0]["epoch"], 1);
  EXPECT_EQ(epochs[0]["step"], 7);
  expect_has(p.said(), "epoch 1  train loss ");
  expect_has(p.said(), "  test loss 1.0  ");
  EXPECT_EQ(p.record.epoch().images, 0);
  EXPECT_TRUE(w.has("run/report.html"));
  EXPECT_EQ(Peek(p.record).numbers.at("training_at_epoch"), p.run.costs.seconds.training());
}

TEST(Record, AScoreIsAnEventIfThereIsOne) {
  const Workplace w;
  comm::WorldOfOne alone;
  Parts p(alone, small_config(), w.path() / "run");
  p.record.write_score({});
  EXPECT_TRUE(events(w.path() / "run", "eval").empty());
  EvalEvent e;
  e.step = 5, e.top1 = 75;
  p.record.write_score(e);
  ASSERT_EQ(events(w.path() / "run", "eval").size(), 1u);
  EXPECT_EQ(events(w.path() / "run", "eval")[0]["top1"], 75);
}

}  // namespace
}  // namespace skein::apps
