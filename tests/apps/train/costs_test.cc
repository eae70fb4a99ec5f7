// How a step's time and bytes are counted.
#include "apps/train/costs.h"

#include <gtest/gtest.h>

#include "tests/support/peek.h"
#include "tests/support/world.h"

namespace skein::apps {
namespace {

void talk(comm::Communicator& comm) { comm.all_reduce(Tensor::zeros({1000})).wait(); }

TEST(Costs, OnlyWhatStepsSendCounts) {
  comm::in_local_world(2, [](comm::Communicator& comm) {
    Costs costs;
    talk(comm);
    costs.begin(comm);
    talk(comm);
    costs.count(comm);
    EXPECT_EQ(costs.transfers.bytes, 0);
    {
      StepCosts step(costs, comm);
      talk(comm);
      step.end();
    }
    const double bytes = costs.transfers.bytes;
    EXPECT_GT(bytes, 0);
    talk(comm);
    costs.count(comm);
    EXPECT_EQ(costs.transfers.bytes, bytes);
  });
}

TEST(Costs, AStepsTimeIsThatOfItsGradientAndWaitsAndTheRestIsTheUpdate) {
  comm::in_local_world(2, [](comm::Communicator& comm) {
    Costs costs;
    costs.begin(comm);
    StepCosts step(costs, comm);
    costs.seconds.forward += 1e-9;
    talk(comm);
    const auto [from, to] = step.end();
    EXPECT_NEAR(costs.seconds.training(), to - from, 1e-9);
    EXPECT_DOUBLE_EQ(costs.seconds.peers, std::min(costs.transfers.waited, to - from - 1e-9));
    EXPECT_EQ(costs.seconds.forward, 1e-9);
  });
}

TEST(Costs, AreSavedUnderTheirNames) {
  Costs costs;
  costs.seconds.peers = 3;
  costs.transfers.in_flight = 4;
  const Peek peek(costs);
  EXPECT_EQ(peek.numbers.at("seconds.peers"), 3);
  EXPECT_EQ(peek.numbers.at("transfers.in_flight"), 4);
  EXPECT_EQ(peek.numbers.size(), 10u);
}

}  // namespace
}  // namespace skein::apps
