// The simulated world: its time, its order, its network.
#include "comm/sim/misfortunes.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <fstream>

#include "comm/sim/sanitized_stack.h"
#include "engine/random.h"
#include "tests/support/sim.h"
#include "tests/support/world.h"

namespace skein::comm::sim {
namespace {

const Weather kStorm{
    .seed = 5, .latency = 1e-3, .jitter = 0.02, .bandwidth = 1e9, .loss = 0.2, .duplication = 0.2};

// ---- time -------------------------------------------------------------------------------------------------

TEST(World, WhatIsTooFarOffToBeCountedNeverComes) {
  const auto fails = [] { ADD_FAILURE() << "has come"; };
  SitePlan slow;
  slow.hosts = {{.name = "h", .workers = 2}};
  slow.byte = 1e3;
  Baton baton;
  Site site(baton, slow);
  Network network(baton, {});
  network.flow_through(site);
  for (int w = 0; w < 2; ++w) baton.begin([] { nap(in_seconds(100)); }, [] {});
  for (int k = 0; k < 30; ++k) network.send(1, 2, 1e6, {}, fails);
  baton.run(Clock::time_point::max());

  World world;
  world.begin(1, [] { spend(1000); }), world.begin(2, [] { spend(1000); });
  world.at(1e11, fails);
  suffer(world, {.kills = 1e-12}, 1e15);
  world.run();
  EXPECT_EQ(world.now(), 1000);
}

TEST(World, AnHourOfWaitsTakesNoTime) {
  const auto began = std::chrono::steady_clock::now();
  World world;
  populate(world, 2,
           [&](Communicator& c) {
             if (c.rank() == 0) {
               spend(3600);
               c.push(1, 1, 0, 1, number(7));
               spend(2000);
             } else {
               EXPECT_EQ(c.take(0, 1, 0).payload.item(), 7);
               EXPECT_NEAR(world.now(), 3600, 1e-6);
               EXPECT_EQ(c.take_within(1800, 0, 1, 1), std::nullopt);
               EXPECT_NEAR(world.now(), 5400, 1e-6);
             }
           },
           {.deadline = kForever});
  world.run();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

TEST(World, AWaitEndsAtItsDeadline) {
  World world;
  populate(world, 2,
           [&](Communicator& c) {
             if (c.rank() == 1) return spend(100);
             EXPECT_THROW(c.take(1, 1, 0), Timeout);
             EXPECT_NEAR(world.now(), 30, 1);
           },
           {.deadline = 30});
  world.run();
}

TEST(World, AWaitEndsWhenTheOtherMessageIsThere) {
  World world;
  populate(world, 3, [&](Communicator& c) {
    if (c.rank() > 0) {
      spend(c.rank() == 1 ? 20 : 10);
      return c.push(0, uint32_t(c.rank()), 4, 1, number(float(c.rank())));
    }
    EXPECT_EQ(c.take_unless({2, 4}, 5, 1, 1, 4), std::nullopt);  // too early for both
    EXPECT_NEAR(world.now(), 5, 1e-6);
    EXPECT_EQ(c.take_unless({2, 4}, 100, 1, 1, 4), std::nullopt);
    EXPECT_NEAR(world.now(), 10, 1e-6);
    EXPECT_EQ(c.take_unless({2, 4}, 100, 1, 1, 4), std::nullopt);  // it waits here still
    EXPECT_NEAR(world.now(), 10, 1e-6);
    EXPECT_TRUE(c.poll(kAnyone, 2, 4));
    EXPECT_EQ(c.take_unless({2, 4}, 100, 1, 1, 4)->payload.item(), 1);
    EXPECT_NEAR(world.now(), 20, 1e-6);
  });
  world.run();
}

TEST(World, VirtualTimeIsLatencyPlusBytesOverBandwidth) {
  World world({.weather = {.latency = 0.5, .bandwidth = 4000}});
  populate(world, 2, [&](Communicator& c) {
    const double met = 1;  // seconds that the members of an epoch take to meet
    if (c.rank() == 0) {
      spend(2);
      c.push(1, 1, 0, 1, Tensor::zeros({1000}));  // one second on the link
      c.push(1, 1, 1, 1, Tensor::zeros({1000}));  // waits for the link
      EXPECT_EQ(world.now(), met + 2);            // sending costs the sender nothing
    } else {
      c.take(0, 1, 0);
      EXPECT_NEAR(world.now(), met + 3.5, 1e-8);
      spend(10);
      c.take(0, 1, 1);
      EXPECT_NEAR(world.now(), met + 13.5, 1e-8);  // it had arrived meanwhile: hidden behind the work
    }
  });
  world.run();
}

TEST(World, AWaitForNothingIsAnError) {
  World world;
  world.begin(1, [] {
    Mutex mutex;
    Condition never;
    Condition::Lock lock(mutex);
    never.wait(lock, [] { return false; });
  });
  EXPECT_THROW(world.run(), Error);
}

TEST(World, WhatAWorkerThrowsComesOut) {
  World world;
  populate(world, 3, [](Communicator& c) {
    if (c.rank() == 1) throw BadOption("no such worker");
    EXPECT_THROW(c.take(1, 1, 0), PeerLost);
  });
  EXPECT_THROW(world.run(), BadOption);
}

// ---- order ------------------------------------------------------------------------------------------------

// Handlers, collectives, messages from anyone, faults: all that could depend on the scheduling.
std::string busy_log(uint64_t seed) {
  World world({.weather = {.seed = seed, .latency = 1e-3, .jitter = 0.02, .loss = 0.1, .duplication = 0.1}});
  populate(world, 6, [&](Communicator& c) {
    const auto twin = c.twin();
    twin->on(7, [&](const Message& m) { world.note(text("heard ", m.from, " ", m.step)); });
    const Draw draw{seed, skein::Purpose::kTest, 0, uint32_t(c.rank())};
    for (int64_t k = 0; k < 20; ++k) {
      spend(0.01 * double(draw.unit(uint64_t(k))));
      c.push((c.rank() + 1) % 6, 7, k, 1, number(float(k)));
      c.all_reduce(Tensor::zeros({100})).wait();
    }
    c.barrier();
  });
  suffer(world, {.hangs = 0.5, .hang_seconds = 0.1}, 3);
  world.run();
  return world.log();
}

TEST(World, TheSameSeedGivesTheSameLog) {
  for (uint64_t seed : {1, 2, 3}) {
    const std::string log = busy_log(seed);
    EXPECT_GT(log.size(), 10000u);
    EXPECT_EQ(busy_log(seed), log);
  }
  EXPECT_NE(busy_log(1), busy_log(2));
}

TEST(World, SixtyFourWorkersWork) {
  in_sim_world(64, {.latency = 1e-3}, [](Communicator& c) {
    for (int k = 0; k < 3; ++k) {
      const Tensor x = number(float(c.rank()));
      c.all_reduce(x).wait();
      ASSERT_EQ(x.item(), 64 * 63 / 2);
    }
  });
}

// ---- the network
// --------------------------------------------------------------------------------------------

TEST(World, TenThousandRandomMessagesArriveOnceEach) {
  constexpr int kRanks = 4, kEach = 2500;
  Weather wild = kStorm;
  for (bool overtaking : {false, true}) {
    wild.overtaking = overtaking;
    const Counts all = in_sim_world(kRanks, wild, [](Communicator& c) {
      const Draw draw{11, skein::Purpose::kTest, 0,
                      0};  // the same for all: everyone knows who writes to whom
      std::vector<std::vector<int64_t>> due(kRanks);
      for (int64_t k = 0; k < kEach * kRanks; ++k) {
        const Rank from = Rank(draw.bits(uint64_t(2 * k)) % kRanks),
                   to = Rank((from + 1 + draw.bits(uint64_t(2 * k + 1)) % (kRanks - 1)) % kRanks);
        if (from == c.rank()) c.push(to, 1, k, 1, Tensor::of<float>({2}, {float(k), float(from)}), double(k));
        if (to == c.rank()) due[size_t(from)].push_back(k);
        c.progress();
      }
      for (Rank from = 0; from < kRanks; ++from)
        for (int64_t k : due[size_t(from)]) {
          const Message m = c.take(from, 1, k);
          ASSERT_EQ(m.payload.data<float>()[0], float(k));
          ASSERT_EQ(m.payload.data<float>()[1], float(from));
          ASSERT_EQ(m.weight, double(k));
        }
      c.barrier();
      for (Rank from = 0; from < kRanks; ++from)
        if (from != c.rank()) { ASSERT_FALSE(c.poll(from, 1).has_value()); }  // nothing came twice
      c.barrier();
    });
    EXPECT_GT(all.lost, 1000);  // the weather did happen
    EXPECT_GT(all.duplicates, 1000);
    EXPECT_EQ(all.overtaken > 1000, overtaking);
  }
}

TEST(World, MessagesOfASenderKeepTheirOrder) {
  in_sim_world(2, kStorm, [](Communicator& c) {
    for (int64_t k = 0; k < 500; ++k) {
      if (c.rank() == 0) c.push(1, 1, k, 1, number(float(k)));
      if (c.rank() == 1) { ASSERT_EQ(c.take_within(20, 0, 1, kAnyStep)->step, k); }
    }
  });
}

TEST(World, CollectivesGiveTheSameBitsInAnyWeather) {
  Weather wild = kStorm;
  wild.overtaking = true;
  for (int n : {1, 2, 3, 5, 8})
    in_sim_world(n, wild, [n](Communicator& c) {
      for (int64_t size : {1, 100, 30000}) {
        Tensor x({size});
        for (int64_t i = 0; i < size; ++i) x.data<float>()[i] = float(c.rank() + 1) / float(i + 3);
        c.all_reduce(x).wait();
        for (int64_t i = 0; i < size; ++i) {
          float s = 0;
          for (int r = 0; r < n; ++r) s += float(r + 1) / float(i + 3);
          ASSERT_EQ(x.data<float>()[i], s);
        }
        c.barrier();
      }
    });
}

#if !SKEIN_ASAN && !SKEIN_TSAN  // which end the program where there is no memory

// While it lives, the program gets only so many more bytes of addresses.
class Cramped {
 public:
  explicit Cramped(rlim_t more) {
    getrlimit(RLIMIT_AS, &before_);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit less{pages * rlim_t(sysconf(_SC_PAGESIZE)) + more, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  }
  ~Cramped() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

TEST(World, MoreWorkersThanThereIsMemoryForAreRefused) {
  for (const bool fibers : {false, true}) {
    int begun = 0, ran = 0;
    std::string why;
    try {
      World world({.fibers = fibers});
      const Cramped memory(rlim_t(256) << 20);
      for (; begun < 100000; ++begun) world.begin(Id(begun), [&] { ++ran; });
    } catch (const Error& e) { why = e.what(); }
    EXPECT_GT(begun, 0) << fibers;
    EXPECT_NE(why.find("; simulate fewer, or raise "), std::string::npos) << why;
    EXPECT_EQ(ran, 0) << "the others end without having begun";
  }
}

TEST(World, AWorkerThatGetsNoOtherThreadEndsByThat) {
  World world({.fibers = true});
  world.begin(1, [] {
    const Cramped memory(rlim_t(64) << 20);
    std::deque<Thread> threads;
    struct Join {
      std::deque<Thread>& all;
      ~Join() {
        for (Thread& t : all) t.join();
      }
    } join{threads};
    for (;;) threads.emplace_back([] {});
  });
  world.begin(2, [] { spend(10); });
  EXPECT_THROW(world.run(), Error);
  EXPECT_EQ(world.now(), 10) << "the other one goes on";
}

#endif

TEST(World, ASenderWaitsForRoom) {
  World world({.room = 1000});
  populate(world, 2, [&](Communicator& c) {
    const Tensor x = Tensor::zeros({200});
    if (c.rank() == 1) {
      spend(5);
      for (int64_t k = 0; k < 3; ++k) c.take(0, 1, k);
      return;
    }
    for (int64_t k = 0; k < 3; ++k) c.push(1, 1, k, 1, x);
    EXPECT_NEAR(world.now(), 5, 0.1);
  });
  world.run();
}

TEST(World, ASenderWhoseEpochHasEndedWaitsForNoRoom) {
  World world({.room = 1000});
  populate(world, 2, [&](Communicator& c) {
    if (c.rank() == 1) return spend(5);
    world.at(2, [&] { c.transport().mailbox().end_epoch("the end"); });
    for (int64_t k = 0; k < 2; ++k) c.push(1, 1, k, 1, Tensor::zeros({200}));
    EXPECT_NEAR(world.now(), 2, 0.1);
  });
  world.run();
}

TEST(World, RanksThatDisagreeAreToldSo) {
  in_sim_world(2, {.latency = 0.01}, [](Communicator& c) {
    c.barrier();
    EXPECT_THROW(c.all_reduce(Tensor::zeros({10 + c.rank()})).wait(), Disagreement);
  });
}

}  // namespace
}  // namespace skein::comm::sim
