// Workers in step that lose one end at their last common step; asynchronous ones end where they are.
#include "apps/train/rollback.h"

#include <gtest/gtest.h>

#include <latch>

#include "apps/model/weights.h"
#include "comm/membership/council.h"
#include "tests/support/parts.h"

namespace skein::apps {
namespace {

using testing_programs::expect_has;

struct End {
  Outcome outcome;
  int64_t step = 0;
  std::vector<std::string> hashes;  // of x after 0, 1, ... steps
  std::string hash;                 // at the end
};

// Worker r of three takes steps[r]; then worker 2 is lost, and the others end without it.
std::vector<End> lose_one(const Workplace& w, Config c, const std::vector<int>& steps) {
  c.batch_size = 4;
  auto world = comm::local_world(3);
  std::vector<End> ends(3);
  std::latch walked(3);
  comm::on_threads(3, [&](comm::Rank me) {
    comm::Communicator all(*world[size_t(me)], {.deadline = 20});
    Parts p(all, c, w.path() / "run");
    End& end = ends[size_t(me)];
    const auto hash = [&] { return parameter_hash(p.learning.flat, p.learning.flat.x); };
    end.hashes.push_back(hash());
    for (int i = 0; i < steps[size_t(me)]; ++i) p.step(), end.hashes.push_back(hash());
    walked.arrive_and_wait();
    if (me == 2) {
      for (int r = 0; r < 2; ++r) world[size_t(r)]->mailbox().lose(2, "its process has ended", true);
      return;
    }
    EXPECT_THROW(all.take(2, 1, 0), comm::PeerLost);
    end.outcome = p.rollback.end("worker 2 is lost");
    end.step = p.run.k;
    end.hash = hash();
  });
  return ends;
}

Config in_step() {
  Config c = small_config();
  c.algorithm = "local-sgd";
  c.of_algorithm["tau"] = "1000";  // no worker communicates
  return c;
}

TEST(Rollback, WorkersInStepGoBackToTheLastStepOfAllAndSaveIt) {
  const Workplace w;
  const std::vector<End> ends = lose_one(w, in_step(), {3, 4, 4});
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(ends[size_t(r)].step, 3);
    EXPECT_EQ(ends[size_t(r)].hash, ends[size_t(r)].hashes[3]);
    EXPECT_TRUE(ends[size_t(r)].outcome.bereaved);
    EXPECT_TRUE(ends[size_t(r)].outcome.interrupted);
  }
  expect_has(ends[0].outcome.why,
             "worker 2 is lost: its process has ended; the others wrote a checkpoint of step 3");
  EXPECT_EQ(ends[1].outcome.why, "");
  const std::string checkpoint = find_checkpoint(w.path() / "run");
  verify_checkpoint(checkpoint);
  EXPECT_EQ(read_manifest(checkpoint).step, 3);
  EXPECT_EQ(read_manifest(checkpoint).files.size(), 3u);
}

TEST(Rollback, WorkersTooManyStepsApartWriteNoCheckpoint) {
  const Workplace w;
  const std::vector<End> ends = lose_one(w, in_step(), {1, 8, 1});
  expect_has(ends[0].outcome.why,
             "the others are too many steps apart for a new checkpoint; no checkpoint was written yet");
  EXPECT_TRUE(list_checkpoints(w.path() / "run").empty());
}

TEST(Rollback, AsynchronousWorkersEndWhereTheyAre) {
  const Workplace w;
  Config c = small_config();
  c.algorithm = "downpour";
  const std::vector<End> ends = lose_one(w, c, {0, 0, 0});
  EXPECT_TRUE(ends[0].outcome.bereaved);
  expect_has(ends[0].outcome.why, "worker 2 is lost: its process has ended; no checkpoint was written yet");
  EXPECT_TRUE(list_checkpoints(w.path() / "run").empty());
}

TEST(Rollback, AnErrorWithoutALossIsThrownOn) {
  const Workplace w;
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    Config c = in_step();
    Parts p(comm, c, w.path() / "run");
    p.step();
    try {
      p.rollback.end("a wait took too long");
      ADD_FAILURE() << "ended as if somebody were lost";
    } catch (const Error& e) { expect_has(e.what(), "a wait took too long; no checkpoint was written yet"); }
  });
}

// Workers 1 and 2 of three have gone, and worker 0 ends alone. Returns why it says that it ends.
std::string end_alone(const Workplace& w, bool elastic, bool were_killed) {
  auto world = comm::local_world(3);
  comm::View v;
  for (comm::MemberId m : {10, 11, 12}) v.members.push_back({m, "", true});
  std::latch walked(3), gone(3);
  std::string why;
  comm::on_threads(3, [&](comm::Rank me) {
    comm::Transport& transport = *world[size_t(me)];
    comm::Communicator all(transport, {.deadline = 20});
    const auto council =
        elastic
            ? std::make_unique<comm::Council>(
                  transport,
                  comm::CouncilOptions{.me = v.members[size_t(me)].id, .now = v, .card = "", .is_gone = {}})
            : nullptr;
    Parts p(all, in_step(), w.path() / "run", false, council.get());
    p.step();
    walked.arrive_and_wait();
    if (me > 0 && were_killed) world[0]->mailbox().lose(me, "its process has ended", true);
    if (me > 0 && !were_killed) world[0]->mailbox().leave(me);
    gone.arrive_and_wait();
    if (me == 0) why = p.rollback.end("nobody answers").why;
  });
  return why;
}

// Where the membership changes, those who have said goodbye to a worker may go on in a later epoch
// without telling it.
TEST(Rollback, WhoHasSeenOthersSayGoodbyeWritesNothingBesideThem) {
  const Workplace w;
  expect_has(end_alone(w, true, false),
             "with 1 of 3 workers this side writes no checkpoint, since the other may");
  EXPECT_TRUE(list_checkpoints(w.path() / "run").empty());
}

TEST(Rollback, WhoseOthersHaveEndedWritesTheCheckpoint) {
  for (const bool elastic : {false, true}) {
    const Workplace w;
    expect_has(end_alone(w, elastic, true), "the others wrote a checkpoint of step ");
    EXPECT_EQ(list_checkpoints(w.path() / "run").size(), 1u);
  }
  const Workplace w;
  expect_has(end_alone(w, false, false), "the others wrote a checkpoint of step 1");
}

TEST(Rollback, AStepThatBrokeOffIsTakenBack) {
  const Workplace w;
  auto world = comm::local_world(2);
  std::latch walked(2);
  comm::on_threads(2, [&](comm::Rank me) {
    comm::Communicator all(*world[size_t(me)], {.deadline = 20});
    Parts p(all, in_step(), w.path() / "run");
    p.step();
    walked.arrive_and_wait();
    if (me == 1) return world[0]->mailbox().lose(1, "its process has ended", true);
    const std::string whole = parameter_hash(p.learning.flat, p.learning.flat.x);
    const auto half_a_step = [&] {
      fill(p.learning.flat.x, 7.f);
      all.take(1, 1, 0);
    };
    EXPECT_THROW(p.rollback.step(half_a_step), comm::PeerLost);
    EXPECT_EQ(parameter_hash(p.learning.flat, p.learning.flat.x), whole);
    const Outcome out = p.rollback.end("worker 1 is lost");
    EXPECT_EQ(out.step, 1);
    EXPECT_EQ(parameter_hash(p.learning.flat, p.learning.flat.x), whole);
  });
}

}  // namespace
}  // namespace skein::apps
