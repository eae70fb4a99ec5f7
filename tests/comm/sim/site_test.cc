// Machines, hosts and switches: the ways between hosts, and times of transfers, collectives and work
// by closed forms.
#include "comm/sim/site.h"

#include "tests/support/sim.h"
#include "tests/support/world.h"

namespace skein::comm::sim {
namespace {

constexpr double kHeader = sizeof(Header);

SitePlan star(int hosts, double rate, double latency = 0) {
  SitePlan p;
  for (int h = 0; h < hosts; ++h)
    p.hosts.push_back({.name = text("h", h), .rate = rate, .latency = latency / 2});
  return p;
}

// Seconds until all have done f, since they met.
double seconds_of(const SitePlan& p, const std::function<void(Communicator&)>& f) {
  World world({.keeps_log = false, .site = p});
  double longest = 0;
  populate(world, p.workers(),
           [&](Communicator& c) {
             c.barrier();
             spend(10 - world.now());  // the barrier leaves them apart by what its messages took
             f(c);
             longest = std::max(longest, world.now() - 10);
           },
           {.deadline = kForever});
  world.run();
  return longest;
}

TEST(Site, AMessageTakesItsBytesOverTheRateAndTheLatency) {
  SitePlan p = star(2, 1e6, 0.25);
  const auto pass = [](Communicator& c) {
    if (c.rank() == 0) c.push(1, 1, 0, 1, Tensor::zeros({250000}));
    if (c.rank() == 1) c.take(0, 1, 0);
  };
  EXPECT_NEAR(seconds_of(p, pass), (1e6 + kHeader) / 1e6 + 0.25, 1e-6);
  p.shared = {{{1, 0.1}}};  // it shares the link with nobody
  p.goodput = 0.5;
  EXPECT_NEAR(seconds_of(p, pass), (1e6 + kHeader) / 0.5e6 + 0.25, 1e-6);
  p.message = 0.125;
  p.byte = 1e-6;
  EXPECT_NEAR(seconds_of(p, pass), (1e6 + kHeader) / 0.5e6 + 0.25 + 0.125 + 1e-6 * (1e6 + kHeader), 1e-6);
}

TEST(Site, ALinkOfTwoHostsBoundsOnlyTheWayBetweenThem) {
  SitePlan p = star(3, 1e6, 0.25);
  p.links.push_back({2, 1, 2e5, 0.5});
  for (const auto& [from, to, rate, latency] :
       {std::tuple(1, 2, 2e5, 0.75), {2, 1, 2e5, 0.75}, {0, 1, 1e6, 0.25}})
    EXPECT_NEAR(seconds_of(p,
                           [from = from, to = to](Communicator& c) {
                             if (c.rank() == from) c.push(to, 1, 0, 1, Tensor::zeros({250000}));
                             if (c.rank() == to) c.take(from, 1, 0);
                           }),
                (1e6 + kHeader) / rate + latency, 1e-6)
        << from << " to " << to;
}

TEST(Site, WorkersOfAHostSendEachOtherForNothing) {
  SitePlan p = star(1, 1, 1);
  p.hosts[0].workers = 2;
  EXPECT_NEAR(seconds_of(p,
                         [](Communicator& c) {
                           if (c.rank() == 0) c.push(1, 1, 0, 1, Tensor::zeros({250000}));
                           if (c.rank() == 1) c.take(0, 1, 0);
                         }),
              0, 1e-9);
}

// Both directions of a link are used at once. Reduce-scatter and all-gather move (n - 1) / n of
// the bytes each.
TEST(Site, AnAllReduceTakesTheTimeOfItsVolumeAndTwoLatencies) {
  for (int n : {2, 4, 8}) {
    const double bytes = 1 << 20, rate = 1e7, latency = 1e-3;
    const double seconds = seconds_of(star(n, rate, latency), [&](Communicator& c) {
      c.all_reduce(Tensor::zeros({int64_t(bytes) / 4})).wait();
    });
    EXPECT_NEAR(seconds, 2 * ((n - 1.0) / n * bytes + (n - 1) * kHeader) / rate + 2 * latency, 1e-6) << n;
  }
}

TEST(Site, SendersToOneReceiverShareItsLink) {
  const auto f = [](Communicator& c) {
    if (c.rank() > 0) return c.push(0, 1, 0, 1, Tensor::zeros({25000}));
    for (Rank r = 1; r < 5; ++r) c.take(r, 1, 0);
  };
  SitePlan p = star(5, 1e6);
  const double all = 4 * (1e5 + kHeader) / 1e6;
  EXPECT_NEAR(seconds_of(p, f), all, 1e-6);
  p.shared = {{{2e5, 0.8}, {1e6, 0.5}}};
  EXPECT_NEAR(seconds_of(p, f), all / 0.8, 1e-6);
  p.shared = {{{1e4, 0.8}, {1e5, 0.5}}};
  EXPECT_NEAR(seconds_of(p, f), all / 0.5, 1e-6);
}

// A large message slows down a small one, too, until it has come.
TEST(Site, TheLeastShareOfSeveralMessagesCounts) {
  SitePlan p = star(3, 1e6);
  p.shared = {{{1e4, 0.8}, {1e6, 0.5}}};
  EXPECT_NEAR(seconds_of(p,
                         [](Communicator& c) {
                           if (c.rank() > 0)
                             return c.push(0, 1, 0, 1, Tensor::zeros({c.rank() == 1 ? 1000 : 250000}));
                           for (Rank r = 1; r < 3; ++r) c.take(r, 1, 0);
                         }),
              2 * (4e3 + kHeader) / 0.5e6 + (1e6 - 4e3) / 1e6, 1e-6);
}

TEST(Site, BothDirectionsOfACableAreCrowdedTogether) {
  SitePlan p = star(2, 1e6);
  p.shared = {{{1, 0.8}}};
  const auto exchange = [](bool both) {
    return [both](Communicator& c) {
      if (both || c.rank() == 0) c.push(1 - c.rank(), 1, 0, 1, Tensor::zeros({25000}));
      if (both || c.rank() == 1) c.take(1 - c.rank(), 1, 0);
    };
  };
  const double one = (1e5 + kHeader) / 1e6;
  EXPECT_NEAR(seconds_of(p, exchange(false)), one, 1e-6);
  EXPECT_NEAR(seconds_of(p, exchange(true)), one / 0.8, 1e-6);
}

// When the messages of two senders have come at rank 0, of which the second one belongs to an older round.
std::pair<double, double> arrivals_of(Tag tag) {
  double younger = 0, older = 0;
  World world({.keeps_log = false, .site = star(3, 1e6)});
  populate(world, 3, [&](Communicator& c) {
    spend(1 - world.now());
    if (c.rank() > 0) return c.push(0, tag, c.rank() == 1 ? 8 : 7, 1, Tensor::zeros({25000}));
    c.take(2, tag, 7);
    older = world.now() - 1;
    c.take(1, tag, 8);
    younger = world.now() - 1;
  });
  world.run();
  return {older, younger};
}

TEST(Site, MessagesOfAnOlderRoundGoFirst) {
  const double one = (1e5 + kHeader) / 1e6;
  const auto [older, younger] = arrivals_of(kRounds | 1);
  EXPECT_NEAR(older, one, 1e-6);
  EXPECT_NEAR(younger, 2 * one, 1e-6);
  EXPECT_NEAR(arrivals_of(1).first, 2 * one, 1e-6);  // of no round: they share the link
}

// Two racks of two hosts: what goes from one to the other shares the uplink.
SitePlan racks(double up) {
  SitePlan p = star(4, 1e6);
  p.switches = {{.name = "core"}, {.name = "a", .above = 0, .up = up}, {.name = "b", .above = 0, .up = up}};
  for (int h = 0; h < 4; ++h) p.hosts[size_t(h)].at = 1 + h / 2;
  return p;
}

TEST(Site, AnUplinkIsSharedByWhatCrossesIt) {
  const auto shift = [](Rank by) {
    return [by](Communicator& c) {
      c.push((c.rank() + by) % 4, 1, 0, 1, Tensor::zeros({25000}));
      c.take((c.rank() + 4 - by) % 4, 1, 0);
    };
  };
  EXPECT_NEAR(seconds_of(racks(1e6), shift(2)), 2 * (1e5 + kHeader) / 1e6, 1e-6);
  EXPECT_NEAR(seconds_of(racks(2e6), shift(2)), (1e5 + kHeader) / 1e6, 1e-6);
  EXPECT_NEAR(seconds_of(racks(0.5e6), shift(1)), (1e5 + kHeader) / 0.5e6, 1e-6);  // 1 to 2, and 3 to 0
}

TEST(Site, ASwitchIsSharedByAllThatGoesThroughIt) {
  SitePlan p = star(4, 1e6);
  p.switches = {{.name = "slow", .rate = 1e6, .latency = 0.5}};
  for (SitePlan::Host& h : p.hosts) h.at = 0;
  EXPECT_NEAR(seconds_of(p,
                         [](Communicator& c) {
                           c.push(c.rank() ^ 1, 1, 0, 1, Tensor::zeros({25000}));
                           c.take(c.rank() ^ 1, 1, 0);
                         }),
              4 * (1e5 + kHeader) / 1e6 + 0.5, 1e-6);
}

TEST(Site, HostsWithoutAWayBetweenThemAreNamed) {
  SitePlan p = racks(1e6);
  p.switches[2].above = -1;
  try {
    check_connected(p);
    FAIL();
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "there is no way from host h0 to host h2"); }
}

TEST(Site, WorkersThatComputeAtTheSameMomentShareTheCoresOfTheirMachine) {
  SitePlan p = star(4, 0);
  p.machines = {{.name = "m", .cores = 2}};
  for (SitePlan::Host& h : p.hosts) h.machine = 0;
  World world({.keeps_log = false, .site = p});
  std::vector<double> took(4);
  populate(world, 4, [&](Communicator& c) {
    spend(1 - world.now());
    world.compute(c.rank() == 0 ? 1 : 3);
    took[size_t(c.rank())] = world.now() - 1;
  });
  world.run();
  // All four have half a core until the first is done after 2 s; then three share two cores for the 2 s left.
  EXPECT_NEAR(took[0], 2, 1e-6);
  for (size_t r : {1, 2, 3}) EXPECT_NEAR(took[r], 2 + 2 * 1.5, 1e-6);
}

// 1 MB takes 0.25 s of a core at each end. The sender computes beside it, and each has half of the core until
// the message's work is done; the receiver waits, so its own half second is as long as the message flows.
TEST(Site, MessagesTakeTimeFromWhatTheirHostsCompute) {
  SitePlan p = star(2, 4e6);
  p.work = 0.5e-6;
  p.machines = {{.name = "a", .cores = 1}, {.name = "b", .cores = 1}};
  p.hosts[0].machine = 0, p.hosts[1].machine = 1;
  World world({.keeps_log = false, .site = p});
  double sender = 0, receiver = 0;
  populate(world, 2, [&](Communicator& c) {
    spend(1 - world.now());
    if (c.rank() == 0) c.push(1, 1, 0, 1, Tensor::zeros({250000}));
    if (c.rank() == 0) world.compute(1), sender = world.now() - 1;
    if (c.rank() == 1) c.take(0, 1, 0), receiver = world.now() - 1;
  });
  world.run();
  const double work = 0.25e-6 * (1e6 + kHeader);
  EXPECT_NEAR(sender, 1 + work, 1e-6);
  EXPECT_NEAR(receiver, 2 * work, 1e-6);  // the sender's half, at half of its core
}

// Of two messages that cross, each 1 MB, the first costs each end 0.3 s of its core, as it began alone, and
// the second 0.2: together what two cost that began at once. The second's is done when each has had half
// of the core.
TEST(Site, MessagesThatCrossTakeLessTimeThanOneWay) {
  SitePlan p = star(2, 4e6);
  p.work = 0.5e-6, p.work_one_way = 0.6e-6;
  p.machines = {{.name = "a", .cores = 1}, {.name = "b", .cores = 1}};
  p.hosts[0].machine = 0, p.hosts[1].machine = 1;
  for (const bool cross : {true, false}) {
    World world({.keeps_log = false, .site = p});
    std::vector<double> took(2);
    populate(world, 2, [&](Communicator& c) {
      spend(1 - world.now());
      if (c.rank() == 0 || cross) c.push(1 - c.rank(), 1, 0, 1, Tensor::zeros({250000}));
      if (c.rank() == 1 || cross) c.take(1 - c.rank(), 1, 0), took[size_t(c.rank())] = world.now() - 1;
    });
    world.run();
    std::sort(took.begin(), took.end());
    const double bytes = 1e6 + kHeader;
    EXPECT_NEAR(took[0], cross ? 2 * 0.2e-6 * bytes : 0, 1e-6);
    EXPECT_NEAR(took[1], cross ? 0.5e-6 * bytes : 0.3e-6 * bytes, 1e-6);
  }
}

TEST(Site, AKilledWorkerLeavesItsCores) {
  SitePlan p = star(2, 0);
  p.machines = {{.name = "m", .cores = 1}};
  for (SitePlan::Host& h : p.hosts) h.machine = 0;
  World world({.keeps_log = false, .site = p});
  double took = 0;
  for (Id id : ids(2))
    world.begin(id, [&, id] {
      world.compute(4);
      took = id == 0 ? world.now() : -1;
    });
  world.at(2, [&] { world.kill(1); });
  world.run();
  EXPECT_NEAR(took, 5, 1e-6);  // half of the core for two seconds, then all of it
}

}  // namespace
}  // namespace skein::comm::sim
