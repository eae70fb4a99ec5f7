// Numbers of all workers: weighted means, and how far the workers are apart.
#include "apps/train/over_workers.h"

#include <gtest/gtest.h>

#include "tests/support/world.h"

namespace skein::apps {
namespace {

// Worker 0 saw 10 images, worker 1 saw 30, worker 2 none.
Seen seen_by(int rank) {
  const double images[] = {10, 30, 0}, loss[] = {2, 4, 0}, top1[] = {50, 100, 0};
  const double n = images[rank];
  return {.sums = {n * loss[rank], n * top1[rank] / 100, n},
          .data_wait = 0.1 * rank,
          .peer_wait = 0.3,
          .bytes = 100.0 * (rank + 1)};
}

TEST(OverWorkers, LossAndHitsWeighByImagesAndWaitsDoNot) {
  comm::in_local_world(3, [](comm::Communicator& comm) {
    const SeenByAll all = over_workers(comm, seen_by(comm.rank()));
    EXPECT_EQ(all.images, 40);
    EXPECT_DOUBLE_EQ(all.loss.mean, 3.5);
    EXPECT_DOUBLE_EQ(all.top1.mean, 87.5);
    EXPECT_NEAR(all.data_wait.mean, 0.1, 1e-12);
    EXPECT_DOUBLE_EQ(*all.data_wait.max, 0.2);
    EXPECT_NEAR(*all.bytes, 200, 1e-9);
  });
}

TEST(OverWorkers, AWorkerWithoutImagesHasNoSmallestLoss) {
  comm::in_local_world(3, [](comm::Communicator& comm) {
    const SeenByAll all = over_workers(comm, seen_by(comm.rank()));
    EXPECT_EQ(all.loss.min, 2);
    EXPECT_EQ(all.loss.max, 4);
    EXPECT_EQ(all.top1.min, 50);
    EXPECT_EQ(all.data_wait.min, 0);
  });
}

TEST(OverWorkers, OneThatSendsNothingHasNoSpreadAndNoBytes) {
  comm::in_local_world(1, [](comm::Communicator& comm) {
    Seen mine = seen_by(1);
    mine.bytes.reset();
    const SeenByAll all = over_workers(comm, mine);
    EXPECT_EQ(all.loss.mean, 4);
    EXPECT_FALSE(all.loss.min);
    EXPECT_FALSE(all.bytes);
  });
}

TEST(OverWorkers, WithoutAskingTheOthersImagesAreThoseOfAsManyLikeIt) {
  const SeenByAll all = like_mine(seen_by(1), 4);
  EXPECT_EQ(all.images, 120);
  EXPECT_EQ(all.loss.mean, 4);
  EXPECT_FALSE(all.loss.min);
  EXPECT_EQ(all.bytes, 200);
}

TEST(OverWorkers, TheScaleIsTheSmallestAndSkippedStepsAreTheMean) {
  comm::in_local_world(3, [](comm::Communicator& comm) {
    const Scaling all = over_workers(comm, Scaling{double(8 << comm.rank()), double(comm.rank())});
    EXPECT_EQ(all.scale, 8);
    EXPECT_DOUBLE_EQ(all.skipped, 1);
  });
}

TEST(OverWorkers, TransfersAddUp) {
  comm::in_local_world(3, [](comm::Communicator& comm) {
    const double r = comm.rank();
    const Transfers all = sum_over_workers(comm, {r, 2 * r, 3 * r});
    EXPECT_EQ(all.bytes, 3);
    EXPECT_EQ(all.waited, 6);
    EXPECT_EQ(all.in_flight, 9);
  });
}

}  // namespace
}  // namespace skein::apps
