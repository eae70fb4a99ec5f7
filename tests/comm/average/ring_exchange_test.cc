// Exchanges around a ring: everybody's messages come, and take what the links need for all of them at once.
#include "comm/average/ring_exchange.h"

#include "tests/support/sim.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

constexpr double kRate = 1e6, kLatency = 0.5, kHeader = sizeof(Header);

// The seconds that the workers of a star measure, which has these rates in it.
std::vector<double> measured(const std::vector<double>& rates, const std::function<double(Communicator&)>& f,
                             double latency = 0) {
  sim::SitePlan p;
  for (size_t h = 0; h < rates.size(); ++h)
    p.hosts.push_back({.name = text("h", h), .rate = rates[h], .latency = latency / 2});
  sim::World world({.keeps_log = false, .site = p});
  std::vector<double> all(rates.size());
  sim::populate(world, int(rates.size()), [&](Communicator& c) { all[size_t(c.rank())] = f(c); });
  world.run();
  return all;
}

TEST(RingExchange, TakesTheTimeOfItsMessagesToEachNeighbor) {
  constexpr int64_t kBytes = 400000;
  const double one = (kBytes + kHeader) / kRate;
  const auto exchange = [](Communicator& c) { return seconds_of_exchange(c, kBytes, 3); };
  for (const size_t n : {2u, 3u, 5u})
    for (const double seconds : measured(std::vector<double>(n, kRate), exchange))
      EXPECT_NEAR(seconds, (n == 2 ? 1 : 2) * one, 0.01 * one) << n;
  for (const double seconds : measured({kRate, kRate, kRate / 4, kRate}, exchange))  // all say the slowest's
    EXPECT_NEAR(seconds, 8 * one, 0.01 * one);
}

// And of two latencies, or three where pieces wait for each other; one after the other they would have six.
TEST(RingExchange, SumsTakeTheTimeOfTheirVolumeWithoutThePause) {
  constexpr int64_t kBytes = 400000;
  for (const int n : {2, 4})
    for (const int pieces : {1, 3})
      for (const double seconds : measured(
               std::vector<double>(size_t(n), kRate),
               [&](Communicator& c) { return seconds_of_sum(c, kBytes, pieces, 3, 2.0); }, kLatency)) {
        const double least = 2 * (n - 1.0) / n * kBytes / kRate + 2 * kLatency;
        EXPECT_GE(seconds, least - 0.01) << n << ", " << pieces;
        EXPECT_LE(seconds, least + (pieces > 1 ? kLatency : 0.02)) << n << ", " << pieces;
      }
}

// A rank may be a message ahead of its neighbors, and none is mistaken for another.
TEST(RingExchange, MayBeBehindOrAhead) {
  for (const int n : {2, 4})
    for (const RingWays ways : {RingWays::kBoth, RingWays::kOne})
      in_local_world(n, [&](Communicator& c) {
        RingExchange ring(c, 4096, ways);
        EXPECT_EQ(ring.bytes(), 4096);
        EXPECT_EQ(ring.messages(), c.size() > 2 && ways == RingWays::kBoth ? 2 : 1);
        for (int i = 0; i < 20; ++i) {
          ring.send();
          if (i > 0) ring.receive();
        }
        ring.receive();
      });
}

}  // namespace
}  // namespace skein::comm
