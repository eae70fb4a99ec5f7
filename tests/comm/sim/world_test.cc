// The simulated world: its time, its order, its network, its faults.
#include "comm/sim/world.h"

#include <chrono>

#include "tests/support/sim.h"
#include "tests/support/world.h"

namespace skein::comm::sim {
namespace {

const Weather kStorm{
    .seed = 5, .latency = 1e-3, .jitter = 0.02, .bandwidth = 1e9, .loss = 0.2, .duplication = 0.2};

Tensor number(float v) { return Tensor::of<float>({1}, {v}); }

// Who is lost, as told by what a wait throws, and when.
struct Loss {
  Rank rank = -1;
  double when = 0;
  std::string what;
};
Loss loss_in(World& world, const std::function<void()>& f) {
  try {
    f();
  } catch (const PeerLost& e) { return {e.rank, world.now(), e.what()}; }
  return {};
}

// ---- time -------------------------------------------------------------------------------------------------

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
  world.suffer({.hangs = 0.5, .hang_seconds = 0.1}, 3);
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

// ---- the network --------------------------------------------------------------------------------------------

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

TEST(World, RanksThatDisagreeAreToldSo) {
  in_sim_world(2, {.latency = 0.01}, [](Communicator& c) {
    c.barrier();
    EXPECT_THROW(c.all_reduce(Tensor::zeros({10 + c.rank()})).wait(), Disagreement);
  });
}

// ---- faults -----------------------------------------------------------------------------------------------

TEST(World, AKilledWorkerIsNoticedByItsHangUpOrByItsSilence) {
  for (const auto death : {World::Death::kHangUp, World::Death::kSilence}) {
    World world({.weather = {.latency = 0.1}, .silence = 3});
    bool unwound = false;
    populate(world, 4, [&](Communicator& c) {
      struct Leave {
        bool& unwound;
        Rank rank;
        ~Leave() { unwound = unwound || rank == 2; }
      } leave{unwound, c.rank()};
      const Loss l = loss_in(world, [&] {
        for (;;) spend(1), c.barrier();
      });
      EXPECT_NE(c.rank(), 2) << "goes on after its end";
      EXPECT_EQ(l.rank, 2) << l.what;
      EXPECT_NEAR(l.when, death == World::Death::kHangUp ? 20.1 : 23, 1.2) << l.what;
      if (c.rank() == 0) { EXPECT_TRUE(c.membership().ended(2) == (death == World::Death::kHangUp)); }
      spend(1);
    });
    world.at(20, [&] { world.kill(2, death); });
    world.run();
    EXPECT_TRUE(unwound);
    EXPECT_EQ(world.alive(), std::vector<Id>());
  }
}

TEST(World, AShortHangIsOnlyAPauseAndALongOneALoss) {
  for (double length : {2, 30}) {
    World world({.silence = 10});
    populate(world, 3,
             [&](Communicator& c) {
               const Loss l = loss_in(world, [&] {
                 for (int k = 0; k < 20; ++k) spend(1), c.barrier();
               });
               if (length < 10) {
                 EXPECT_EQ(l.rank, -1) << l.what;
                 EXPECT_NEAR(world.now(), 22, 1.1);
               } else if (c.rank() != 1) {
                 EXPECT_EQ(l.rank, 1) << l.what;
                 EXPECT_NEAR(l.when, 15, 1.1);
               } else {
                 EXPECT_GE(l.rank, 0);  // the others have left, and it sees so as soon as it wakes
                 EXPECT_NEAR(l.when, 35, 1.1);
               }
             },
             {.deadline = 60});
    world.at(5.5, [&] { world.hang(1); });
    world.at(5.5 + length, [&] { world.wake(1); });
    world.run();
  }
}

TEST(World, OfACutEachSideFindsTheOtherSilent) {
  World world({.weather = {.latency = 0.01}, .silence = 5});
  std::vector<std::vector<Rank>> dead(4);
  populate(world, 4, [&](Communicator& c) {
    const Loss l = loss_in(world, [&] {
      for (;;) spend(0.1), c.barrier();
    });
    EXPECT_NEAR(l.when, 15, 0.2) << l.what;
    spend(1);
    dead[size_t(c.rank())] = c.membership().dead();
  });
  world.at(10, [&] { world.cut({0, 3}); });
  world.run();
  EXPECT_EQ(dead[0], (std::vector<Rank>{1, 2}));
  EXPECT_EQ(dead[3], (std::vector<Rank>{1, 2}));
  EXPECT_EQ(dead[1], (std::vector<Rank>{0, 3}));
  EXPECT_EQ(dead[2], (std::vector<Rank>{0, 3}));
}

TEST(World, WhatACutHeldUpArrivesWhenItIsMendedInTime) {
  World world({.weather = {.latency = 0.01}, .silence = 10});
  populate(world, 2, [&](Communicator& c) {
    if (c.rank() == 0) {
      spend(2);
      for (int64_t k = 0; k < 10; ++k) c.push(1, 1, k, 1, number(float(k)));
      return spend(10);
    }
    for (int64_t k = 0; k < 10; ++k) EXPECT_EQ(c.take_within(20, 0, 1, kAnyStep)->step, k);
    EXPECT_NEAR(world.now(), 6.01, 0.01);
  });
  world.at(1, [&] { world.cut({0}); });
  world.at(6, [&] { world.mend(); });
  world.run();
}

TEST(World, AKillUnwindsEveryThreadOfAWorkerWhateverItHolds) {
  World world;
  int ended = 0;
  world.begin(1, [&] {
    struct End {
      int& ended;
      ~End() { ++ended; }
    };
    const End mine{ended};
    Mutex mutex;
    Thread other([&] {
      const End its{ended};
      const Condition::Lock lock(mutex);
      spend(1000);
    });
    struct Join {
      Thread& t;
      ~Join() { t.join(); }
    } join{other};
    spend(1);
    const Condition::Lock lock(mutex);
    spend(1);
    ADD_FAILURE() << "goes on after its end";
  });
  world.at(10, [&] { world.kill(1); });
  world.run();
  EXPECT_EQ(ended, 2);
  EXPECT_LT(world.now(), 11);
}

TEST(World, FaultsByRatesAreThoseOfTheSeed) {
  const auto run = [](uint64_t seed) {
    World world({.weather = {.seed = seed, .latency = 0.01}, .silence = 1});
    populate(world, 5, [&](Communicator& c) {
      loss_in(world, [&] {
        for (int k = 0; k < 300; ++k) spend(0.1), c.barrier();
      });
    });
    world.suffer({.kills = 0.1, .hangs = 0.3, .cuts = 0.1, .hang_seconds = 0.5, .cut_seconds = 0.5}, 20);
    world.run();
    return world.log();
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

// ---- epochs -----------------------------------------------------------------------------------------------

TEST(World, SurvivorsAndAJoinerConnectInANewEpoch) {
  World world({.weather = {.latency = 0.01}});
  std::vector<float> sums;
  const auto second_epoch = [&] {
    const View view{.epoch = 2, .members = {{1, "", true}, {3, "", true}, {4, "", false}}};
    const auto t = world.connect(view);
    Communicator c(*t);
    EXPECT_EQ(c.membership().epoch(), 2u);
    const Tensor x = number(float(world.me()));
    c.all_reduce(x).wait();
    sums.push_back(x.item());
  };
  for (Id id : {1, 2, 3})
    world.begin(id, [&] {
      {
        const auto t = world.connect(1, {1, 2, 3});
        Communicator c(*t);
        EXPECT_EQ(loss_in(world,
                          [&] {
                            for (;;) spend(0.1), c.barrier();
                          })
                      .rank,
                  1);
      }
      second_epoch();
    });
  world.begin(4, second_epoch, 7);
  world.at(5, [&] { world.kill(2); });
  world.run();
  EXPECT_EQ(sums, (std::vector<float>{8, 8, 8}));
  EXPECT_NEAR(world.now(), 7, 0.5);
}

TEST(World, AMemberThatDoesNotComeIsNamed) {
  World world;
  for (Id id : {1, 2, 3})
    world.begin(id, [&, id] {
      if (id == 3) return spend(100);
      try {
        world.connect(1, {1, 2, 3}, 30);
        ADD_FAILURE();
      } catch (const Timeout& e) { EXPECT_EQ(e.rank, 2) << e.what(); }
      EXPECT_NEAR(world.now(), 30, 0.1);
    });
  world.run();
}

}  // namespace
}  // namespace skein::comm::sim
