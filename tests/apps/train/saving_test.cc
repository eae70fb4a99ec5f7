// Checkpoints of all workers: complete or absent, with a part for each lost worker.
#include "apps/train/saving.h"

#include <gtest/gtest.h>

#include <latch>

#include "apps/model/weights.h"
#include "tests/support/parts.h"
#include "tests/support/peek.h"

namespace skein::apps {
namespace {

using testing_programs::expect_has;

Config config_of() {
  Config c = small_config();
  c.algorithm = "local-sgd";
  c.batch_size = 4;
  c.checkpoint_every = "2steps";
  return c;
}

std::string hash(const Parts& p) { return parameter_hash(p.learning.flat, p.learning.flat.x); }

TEST(Saving, WhatIsSavedIsLoadedByEachWorker) {
  const Workplace w;
  const std::string run = w.path() / "run";
  std::vector<std::string> saved(2), loaded(2);
  EXPECT_EQ(how_to_resume(run), "no checkpoint was written yet");
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    Parts p(comm, config_of(), run);
    for (int i = 0; i < 3; ++i) p.step();
    EXPECT_FALSE(p.saving.is_due_after_step());
    p.saving.write();
    saved[size_t(comm.rank())] = hash(p);
  });
  EXPECT_NE(saved[0], saved[1]);
  expect_has(how_to_resume(run), "the checkpoint of step 3 is sound: train_imagenet --resume " + run);
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    Parts p(comm, config_of(), run);
    p.saving.load(find_checkpoint(run));
    EXPECT_EQ(p.run.k, 3);
    EXPECT_TRUE(p.saving.continues());
    EXPECT_TRUE(p.saving.is_saved());
    EXPECT_EQ(p.saving.resumed_from(), run);
    EXPECT_TRUE(p.saving.changes_of_data().empty());
    loaded[size_t(comm.rank())] = hash(p);
    ++p.run.k;
    EXPECT_FALSE(p.saving.is_saved());
    EXPECT_TRUE(p.saving.is_due_after_step());
  });
  EXPECT_EQ(loaded, saved);
}

TEST(Saving, IsRefusedToARunThatWouldEndBeforeIt) {
  const Workplace w;
  const std::string run = w.path() / "run";
  comm::in_local_world(1, [&](comm::Communicator& comm) {
    Parts p(comm, config_of(), run);
    for (int i = 0; i < 3; ++i) p.step();
    p.saving.write();
  });
  comm::in_local_world(1, [&](comm::Communicator& comm) {
    Config shorter = config_of();
    shorter.steps = 2;
    Parts p(comm, shorter, w.path() / "other");
    EXPECT_THROW(p.saving.load(find_checkpoint(run)), BadOption);
  });
}

// There is a file where the directory of checkpoints should be.
TEST(Saving, ThatFailsIsAnErrorOfAllWorkersAndChangesNothing) {
  const Workplace w;
  w.write("run/checkpoints", "");
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    Parts p(comm, config_of(), w.path() / "run");
    for (int i = 0; i < 2; ++i) p.step();
    const std::string before = hash(p);
    EXPECT_THROW(p.saving.write(), BadFile);
    EXPECT_EQ(hash(p), before);
    comm.barrier();
    if (comm.rank() == 0) std::filesystem::remove(w.path() / "run/checkpoints");
    comm.barrier();
    p.saving.write();
    const Peek first(p.batches);
    p.saving.write();  // at the same step: nothing is counted twice
    EXPECT_EQ(Peek(p.batches).numbers.at("unreadable"), first.numbers.at("unreadable"));
  });
  EXPECT_EQ(list_checkpoints(w.path() / "run").size(), 1u);
}

TEST(Saving, TheLostHaveTheStateOfTheLastWhoIsLeft) {
  const Workplace w;
  const std::string run = w.path() / "run";
  auto world = comm::local_world(3);
  std::vector<std::string> saved(3), loaded(3);
  std::latch walked(3);
  comm::on_threads(3, [&](comm::Rank me) {
    comm::Communicator all(*world[size_t(me)], {.deadline = 20});
    Parts p(all, config_of(), run, true);
    p.step();
    walked.arrive_and_wait();
    if (me == 2) {
      for (int r = 0; r < 2; ++r) world[size_t(r)]->mailbox().lose(2, "its process has ended", true);
      return;
    }
    p.survivors.wholly([&] { p.run.comm().barrier(); });
    ASSERT_EQ(p.run.comm().size(), 2);
    p.saving.write();
    saved[size_t(me)] = hash(p);
  });
  EXPECT_NE(saved[0], saved[1]);
  comm::in_local_world(3, [&](comm::Communicator& comm) {
    Parts p(comm, config_of(), w.path() / "next");
    p.saving.load(find_checkpoint(run));
    EXPECT_FALSE(p.saving.continues());
    loaded[size_t(comm.rank())] = hash(p);
  });
  EXPECT_EQ(loaded, (std::vector<std::string>{saved[0], saved[1], saved[1]}));
}

TEST(Saving, TheOthersAreThoseWhoAreNotMembers) {
  EXPECT_EQ(others_than({0, 2}, 4), (std::vector<int>{1, 3}));
  EXPECT_TRUE(others_than({0, 1}, 2).empty());
}

}  // namespace
}  // namespace skein::apps
