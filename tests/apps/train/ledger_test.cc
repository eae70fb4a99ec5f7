// What workers at different steps know of each other's.
#include "apps/train/ledger.h"

#include <gtest/gtest.h>

#include <ctime>

#include "tests/support/parts.h"

namespace skein::apps {
namespace {

double processor_seconds() {  // of this thread
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// A worker that takes long for a step must not fall further behind by what the others tell it.
TEST(Ledger, HearsOfAnyNumberOfStepsInNoTime) {
  constexpr int64_t kSteps = 40'000;
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    Config c;
    c.algorithm = "ad-psgd";
    RunOnPaper paper(comm, c);
    Ledger ledger(paper.run);
    if (comm.rank() == 1)
      for (; paper.run.k < kSteps; ++paper.run.k) {
        ledger.begin_step();
        comm.push(0, 5, 0, 1, Tensor::zeros({1}));
      }
    comm.barrier();
    if (comm.rank() == 1) return;
    const double began = processor_seconds();
    EXPECT_EQ(ledger.taken(), (std::vector<int64_t>{0, kSteps - 2}));
    EXPECT_LT(processor_seconds() - began, 2);
  });
}

}  // namespace
}  // namespace skein::apps
