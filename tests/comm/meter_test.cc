// The meter of traffic: what counts as waiting and as in flight, and the length of a union of spans.
#include "comm/meter.h"

#include <algorithm>

#include "tests/support/sim_trainee.h"

namespace skein {
namespace {

using namespace trainee;
using comm::Cover;

TEST(Meter, OfNothingTransferredNothingIsSaid) {
  in_local_world(1, [](comm::Communicator& c) {
    c.progress();
    EXPECT_EQ(c.meter().traffic().in_flight, 0);
    EXPECT_EQ(c.meter().traffic().waited, 0);
  });
}

TEST(Meter, WhatIsDoneWhileTheMeterIsOffDoesNotCount) {
  in_sim_world(2, {.latency = 1}, [](comm::Communicator& c) {
    const Tensor x = Tensor::zeros({8});
    EXPECT_TRUE(c.meter().turn(false));
    c.all_reduce(x).wait();
    c.push(1 - c.rank(), 1, 0, 1, x);
    c.take(1 - c.rank(), 1, 0);
    EXPECT_EQ(c.meter().traffic().bytes, 0);
    EXPECT_EQ(c.meter().traffic().in_flight, 0);
    EXPECT_EQ(c.meter().traffic().waited, 0);
    EXPECT_FALSE(c.meter().turn(true));
    c.group({0, 1})->all_reduce(x).wait();
    EXPECT_EQ(c.meter().traffic().bytes, 32);
    EXPECT_NEAR(c.meter().traffic().waited, 1, 1e-9);  // of a group, too
    EXPECT_NEAR(c.meter().traffic().in_flight, 1, 1e-9);
  });
}

TEST(Meter, ACollectiveCountsIfItBeganWhileTheMeterWasOn) {
  in_sim_world(2, {.latency = 1}, [](comm::Communicator& c) {
    const Tensor x = Tensor::zeros({1 << 18});  // so large that it takes two rounds of messages
    comm::Pending counted = c.all_reduce(x);
    c.meter().turn(false);
    counted.wait();
    EXPECT_EQ(c.meter().traffic().bytes, x.bytes());
    comm::Pending other = c.all_reduce(x);
    c.meter().turn(true);
    other.wait();
    EXPECT_EQ(c.meter().traffic().bytes, x.bytes());
  });
}

TEST(Meter, CountsWhatGoesToOthersApartFromWhatARankSendsItself) {
  in_sim_world(2, {.latency = 1}, [](comm::Communicator& c) {
    const Tensor x = Tensor::zeros({8});
    c.push(c.rank(), 1, 0, 1, x);
    c.take(c.rank(), 1, 0);
    EXPECT_EQ(c.meter().traffic().messages, 1);
    EXPECT_EQ(c.meter().traffic().to_others, 0);
    c.twin(false)->push(1 - c.rank(), 1, 0, 1, x);
    EXPECT_EQ(c.meter().traffic().messages, 2);
    EXPECT_EQ(c.meter().traffic().to_others, 1);
    c.barrier();
  });
}

TEST(Meter, WaitsOfAnotherThreadAreNotTheWorkersOwn) {
  in_sim_world(2, {.latency = 1}, [](comm::Communicator& c) {
    if (c.rank() == 0) return c.push(1, 1, 0, 1, Tensor::zeros({8}));
    comm::Thread([&] { c.twin()->take(0, 1, 0); }).join();
    EXPECT_EQ(c.meter().traffic().waited, 0);
  });
}

TEST(Meter, AMessageThatIsTakenLateCountsFromItsOwnPush) {
  in_sim_world(2, {.latency = 1}, [](comm::Communicator& c) {
    const Tensor x = Tensor::zeros({8});
    for (int64_t step = 0; step < 3; ++step) {
      c.push(1 - c.rank(), 1, step, 1, x);
      comm::nap(std::chrono::seconds(2));
    }
    for (int64_t step = 3; step-- > 0;) c.take(1 - c.rank(), 1, step);
    EXPECT_NEAR(c.meter().traffic().in_flight, 3, 1e-9);  // a second each, with pauses between
  });
}

TEST(Cover, IsTheLengthOfAUnionInAnyOrder) {
  const Draw draw{3, Purpose::kTest, 0, 0};
  for (uint32_t round = 0; round < 50; ++round) {
    Cover cover;
    std::vector<bool> covered(1000);
    for (uint32_t i = 0; i < 40; ++i) {
      const uint32_t begin = draw.bits(round * 100 + 2 * i) % 900,
                     end = begin + draw.bits(round * 100 + 2 * i + 1) % 100;
      cover.add(begin, end);
      std::fill(covered.begin() + begin, covered.begin() + end, true);
    }
    EXPECT_EQ(cover.length(), double(std::count(covered.begin(), covered.end(), true)));
  }
}

TEST(Cover, KeepsItsSumWhenThePastIsFolded) {
  Cover cover;
  for (int i = 0; i < 10000; ++i) cover.add(i, i + 0.5);
  EXPECT_EQ(cover.length(), 5000);
  cover.add(100, 200);  // of a past that has been added up: not counted twice
  EXPECT_EQ(cover.length(), 5000);
  cover.add(9999, 10001);
  EXPECT_EQ(cover.length(), 5001.5);
}

}  // namespace
}  // namespace skein
