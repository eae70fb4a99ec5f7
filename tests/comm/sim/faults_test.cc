// What a simulated world does to its workers: kills, hangs, cuts; and how the others and
// newcomers meet again.
#include <chrono>

#include "comm/sim/misfortunes.h"
#include "tests/support/sim.h"
#include "tests/support/world.h"

namespace skein::comm::sim {
namespace {

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

TEST(Faults, AKilledWorkerIsNoticedByItsHangUpOrByItsSilence) {
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

TEST(Faults, AShortHangIsOnlyAPauseAndALongOneALoss) {
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

// As after Ctrl-Z and `fg`.
TEST(Faults, AHangOfAllDoesNotCountAsWaitingForACollective) {
  for (const int most_by_messages : {1, kMostByMessages}) {
    World world({.silence = 200, .most_by_messages = most_by_messages});
    populate(world, 2, [&](Communicator& c) {
      spend(c.rank() == 0 ? 10 : 1);
      const Tensor x = number(1);
      c.all_reduce(x).wait();
      EXPECT_EQ(x.item(), 2);
      EXPECT_NEAR(world.now(), 105, 1.1);
    });
    for (const Id id : {0, 1}) {
      world.at(5, [&, id] { world.hang(id); });
      world.at(105, [&, id] { world.wake(id); });
    }
    world.run();
  }
}

TEST(Faults, OfACutEachSideFindsTheOtherSilent) {
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

TEST(Faults, WhatACutHeldUpArrivesWhenItIsMendedInTime) {
  SitePlan far;
  far.hosts = {{.name = "a", .latency = 0.25}, {.name = "b", .latency = 0.5}};
  for (const auto& [site, latency] : {std::pair(std::optional<SitePlan>(), 0.0), {far, 0.75}}) {
    World world({.weather = {.latency = 0.01}, .silence = 10, .site = site});
    populate(world, 2, [&](Communicator& c) {
      if (c.rank() == 0) {
        spend(2);
        for (int64_t k = 0; k < 10; ++k) c.push(1, 1, k, 1, number(float(k)));
        return spend(10);
      }
      for (int64_t k = 0; k < 10; ++k) EXPECT_EQ(c.take_within(20, 0, 1, kAnyStep)->step, k);
      EXPECT_NEAR(world.now(), 6.01 + latency, 1e-6);
    });
    world.at(1, [&] { world.cut({0}); });
    world.at(6, [&] { world.mend({0}); });
    world.run();
  }
}

TEST(Faults, OfTwoCutsAndHangsEachEndsByItself) {
  World world;
  std::vector<double> came(3);
  populate(world, 3, [&](Communicator& c) {
    if (c.rank() > 0) {
      spend(3);
      return c.push(0, uint32_t(c.rank()), 0, 1, number(1)), spend(10);
    }
    for (const Rank r : {2, 1}) {
      c.take(r, uint32_t(r), 0);
      came[size_t(r)] = world.now();
    }
  });
  world.at(1, [&] { world.cut({0}); });
  world.at(2, [&] { world.cut({0, 2}); });
  world.at(5, [&] { world.mend({0}); });
  world.at(7, [&] { world.mend({0, 2}); });
  world.run();
  EXPECT_NEAR(came[2], 5, 1e-6) << "the second cut was not between these";
  EXPECT_NEAR(came[1], 7, 1e-6) << "which the second cut still held up";

  World slow;
  slow.begin(1, [] {
    for (int k = 0; k < 10; ++k) spend(0.1);
  });
  for (const double t : {0.25, 0.5}) slow.at(t, [&] { slow.hang(1); });
  for (const double t : {2., 5.}) slow.at(t, [&] { slow.wake(1); });
  slow.run();
  EXPECT_NEAR(slow.now(), 5.7, 0.11);
}

TEST(Faults, AKillUnwindsEveryThreadOfAWorkerWhateverItHolds) {
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

TEST(Faults, FaultsByRatesAreThoseOfTheSeed) {
  const auto run = [](uint64_t seed) {
    World world({.weather = {.seed = seed, .latency = 0.01}, .silence = 1});
    populate(world, 5, [&](Communicator& c) {
      loss_in(world, [&] {
        for (int k = 0; k < 300; ++k) spend(0.1), c.barrier();
      });
    });
    suffer(world, {.kills = 0.1, .hangs = 0.3, .cuts = 0.1, .hang_seconds = 0.5, .cut_seconds = 0.5}, 20);
    world.run();
    return world.log();
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

TEST(Faults, SurvivorsAndAJoinerConnectInANewEpoch) {
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

TEST(Faults, AMemberThatDoesNotComeIsNamed) {
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
