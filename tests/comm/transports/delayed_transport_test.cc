// The delayed transport: every message counts once, whatever the weather; virtual time adds up.
#include "comm/transports/delayed_transport.h"

#include "engine/random.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

std::vector<std::unique_ptr<Transport>> delayed_world(int n, const Weather& w) {
  auto world = local_world(n);
  for (auto& t : world) t = std::make_unique<DelayedTransport>(std::move(t), w);
  return world;
}
DelayedTransport& delayed(std::unique_ptr<Transport>& t) { return static_cast<DelayedTransport&>(*t); }
const Weather kStorm{
    .seed = 5, .latency = 1e-3, .jitter = 0.02, .bandwidth = 1e9, .loss = 0.2, .duplication = 0.2};

TEST(Delayed, TenThousandRandomMessagesArriveOnceEach) {
  constexpr int kRanks = 4, kEach = 2500;
  auto world = delayed_world(kRanks, kStorm);
  in_world(world, [](Communicator& c) {
    const Draw draw{11, Purpose::kTest, 0, 0};  // the same for all: everyone knows who writes to whom
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
  });
  DelayedTransport::Counts all;
  for (auto& t : world) {
    const auto c = delayed(t).counts();
    all.lost += c.lost, all.duplicates += c.duplicates, all.overtaken += c.overtaken;
  }
  EXPECT_GT(all.lost, 1000);  // the weather did happen
  EXPECT_GT(all.duplicates, 1000);
  EXPECT_GT(all.overtaken, 1000);
}

TEST(Delayed, CollectivesGiveTheSameBitsInAnyWeather) {
  for (int n : {1, 2, 3, 5, 8}) {
    auto world = delayed_world(n, kStorm);
    in_world(world, [n](Communicator& c) {
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
}

TEST(Delayed, VirtualTimeIsLatencyPlusBytesOverBandwidth) {
  auto world = delayed_world(2, {.latency = 0.5, .bandwidth = 4000});
  in_world(world, [&](Communicator& c) {
    DelayedTransport& t = delayed(world[size_t(c.rank())]);
    if (c.rank() == 0) {
      t.spend(2);
      c.push(1, 1, 0, 1, Tensor::zeros({1000}));  // one second on the link
      c.push(1, 1, 1, 1, Tensor::zeros({1000}));  // waits for the link
      EXPECT_EQ(t.now(), 2);                      // sending costs the sender nothing
    } else {
      c.take(0, 1, 0);
      EXPECT_NEAR(t.now(), 3.5, 1e-9);
      t.spend(10);
      c.take(0, 1, 1);
      EXPECT_NEAR(t.now(), 13.5, 1e-9);  // it had arrived meanwhile: hidden behind the work
    }
  });
}

TEST(Delayed, TheSameSeedGivesTheSameTimes) {
  const auto run = [] {
    auto world = delayed_world(3, kStorm);
    std::vector<double> times(3);
    in_world(world, [&](Communicator& c) {
      for (int64_t k = 0; k < 200; ++k) {
        c.push((c.rank() + 1) % 3, 1, k, 1, Tensor::zeros({64}));
        c.take((c.rank() + 2) % 3, 1, k);
        delayed(world[size_t(c.rank())]).spend(1e-3);
      }
      times[size_t(c.rank())] = delayed(world[size_t(c.rank())]).now();
    });
    return times;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace skein::comm
