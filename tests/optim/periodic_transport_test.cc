// Periodic averaging between processes: over shared memory and UCX the same bits as between threads.
#include "optim/periodic/two_level.h"
#include "tests/support/processes.h"
#include "tests/support/roles.h"
#include "tests/support/trainee.h"

namespace skein::comm {
namespace {

using namespace trainee;

const char* const kLines[] = {"local-sgd --tau 2 --bn-policy mix",
                              "slowmo --tau 3",
                              "overlap-local-sgd --tau 2",
                              "cocod --tau 2 --bn-policy mix",
                              "easgd --tau 2",
                              "streaming-diloco --tau 3 --fragments 2 --delay 2",
                              "allreduce --hierarchy 2",
                              "allreduce --hierarchy host"};

// Vectors that go by windows, or by several segments of messages.
const Problem kProblem{.size = 30001, .momentum = 0.9f, .noise = 1};

void train_all(Exchange& e, const std::string& word) {
  omp_set_num_threads(1);
  const auto t = connect(e, way(word));
  Communicator c(*t, in_seconds(30));
  for (const std::string line : kLines) {
    const std::string algorithm = line.substr(0, line.find(' '));
    const auto o = flags_of(line.substr(line.find(' ')));
    // Of the flat sum: ranks over UCX are nodes of one, ranks that share memory are one node.
    const auto expected =
        train(kProblem, algorithm, line.ends_with("host") ? optim::Options() : o, c.size(), 7);
    Trainee mine(kProblem, algorithm, o, c);
    for (int64_t k = 0; k < 7; ++k) {
      mine.step(k);
      c.progress();
      CHECK(values(mine.x) == expected[size_t(k) + 1][size_t(c.rank())], line, "step", k);
    }
    mine.strategy->finish(mine.worker);
    c.barrier();
  }
}

// Rank 2 dies while a mean is under way: the others leave whole steps behind.
void lose_a_worker(Exchange& e, const std::string& word) {
  omp_set_num_threads(1);
  const auto t = connect(e, way(word));
  Communicator c(*t, in_seconds(10));
  Trainee mine(kProblem, "cocod", flags_of("--tau 2"), c);
  optim::Snapshot before, after;
  const auto walk = [&](Archive& a) {
    a("x", mine.x);
    Under r(a, "rule."), s(a, "strategy.");
    mine.rule->visit(r), mine.strategy->visit(s);
  };
  for (int64_t k = 0; k < 20; ++k) {
    if (k == 5 && c.rank() == 2) raise(SIGKILL);
    before.take(walk);
    try {
      mine.step(k);
    } catch (const PeerLost& lost) {
      CHECK(lost.rank == 2);
      after.take(walk);
      CHECK(before == after);
      before.restore(walk);
      leave_together(*t, 2);
      return;
    }
  }
  throw Error("nobody missed rank 2");
}

const AddRole kTrain("train", train_all), kLoseOne("lose_one", lose_a_worker);

TEST(PeriodicBetweenProcesses, GivesTheBitsOfThreads) {
  for (const char* word : {"shared", "ucx"}) {
    Processes p("train", 3, word);
    expect_all_end_well(p);
  }
}
TEST(PeriodicBetweenProcesses, ALostWorkerLeavesWholeStepsBehind) {
  for (const char* word : {"shared", "ucx"}) {
    Processes p("lose_one", 3, word);
    EXPECT_EQ(p.wait(2), 128 + SIGKILL);
    for (Rank r : {0, 1}) EXPECT_EQ(p.wait(r, 20), 0) << word;
  }
}

}  // namespace
}  // namespace skein::comm
