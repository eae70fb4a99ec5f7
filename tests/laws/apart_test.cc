// Every algorithm, with its vectors in memory apart (Device::kApart): where a host's tensor meets a
// device's, or the host reads a device's memory, that throws. What comes out is what comes out on the host,
// bit for bit.
#include "comm/average/averaging.h"
#include "comm/communicator/staging.h"
#include "engine/vectors/clip.h"
#include "engine/vectors/gem.h"
#include "optim/consensus.h"
#include "tests/support/servers.h"
#include "tests/support/strategy_cases.h"

namespace skein {
namespace {

using namespace trainee;

constexpr Device kAside{Device::kApart, 0};

TEST(Apart, TheHostMayNotTouchIt) {
  const Tensor x = Tensor::zeros({4}, kF32, kAside), host({4});
  EXPECT_THROW(x.data<float>(), Error);
  EXPECT_THROW(x.raw(), Error);
  EXPECT_THROW(x.view({2}, 1).data<float>(), Error);
  EXPECT_EQ(values(x), std::vector<float>(4, 0.f));
  EXPECT_EQ(text(x.device()), "apart:0");
}

TEST(Apart, DoesNotMixWithTheHost) {
  const Tensor x = Tensor::zeros({4}, kF32, kAside), host = Tensor::zeros({4});
  EXPECT_THROW(axpy(x, 1.f, host), Error);
  EXPECT_THROW(axpy(host, 1.f, x), Error);
  EXPECT_THROW(copy(x, host), Error);
  EXPECT_THROW(lerp(x, host, 0.5f), Error);
  EXPECT_THROW(dot(x, host), Error);
  EXPECT_THROW(sgd_update({.x = x, .v = {}, .g = host, .at = x, .lr = 0.1f}), Error);
  EXPECT_THROW(gem_update({.x = x, .m = x, .s = x, .u = x, .pi = {}, .g = x, .theta = host}), Error);
}

TEST(Apart, AFunctionOfVectorsIsTheSameThere) {
  const Tensor x = Tensor::of<float>({3}, {1, 2, 3}).to(kAside), y = x.clone();
  scale(y, 2.f), axpy(y, 1.f, x), lerp(y, x, 0.5f);
  EXPECT_EQ(values(y), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(dot(x, y), 28);
  EXPECT_EQ(y.view({1}, 2).item(), 6);
}

TEST(Apart, MessagesComeBesideWhatTheyAreLike) {
  comm::in_local_world(2, [](comm::Communicator& c) {
    const Tensor x({5000}, kF32, kAside);
    fill(x, float(c.rank() + 1));
    c.push(1 - c.rank(), 1, 0, 0.5f, x);
    const comm::Message m = c.take(1 - c.rank(), 1, 0, x);
    EXPECT_EQ(m.payload.device(), kAside);
    EXPECT_EQ(values(m.payload), std::vector<float>(5000, 0.5f * float(2 - c.rank())));
    const std::vector<Tensor> all = c.gather(x, 0);
    for (size_t r = 0; r < all.size(); ++r) EXPECT_EQ(all[r].data<float>()[0], float(r + 1));
  });
}

TEST(Apart, AWorldIsAveraged) {
  for (const auto way : {comm::Averaging::kPushSum, comm::Averaging::kAllReduce})
    comm::in_local_world(4, [&](comm::Communicator& c) {
      const Tensor x({33}, kF32, kAside);
      fill(x, float(c.rank()));
      comm::AveragingOptions o{.algorithm = way, .rounds = 30};
      o.graph = [](int n, uint32_t) { return comm::make_topology("exponential", {}, n); };
      comm::average(c, x, o);
      for (const float v : values(x)) EXPECT_NEAR(v, 1.5f, 1e-5);
    });
}

// Histories in both kinds of memory; of a row whose order is chance, the second in the order of the first.
void expect_same(const Case& c, int n, int64_t steps, comm::CommunicatorOptions how) {
  Problem p{.momentum = 0.9f, .decay = 0.01f, .noise = 1, .start_spread = 1};
  const Again again(c);
  const auto ran = [&](const optim::Options& o) {
    std::vector<std::vector<float>> all(static_cast<size_t>(n));
    auto world = comm::local_world(n);
    comm::in_world(
        world,
        [&](comm::Communicator& comm) {
          Trainee t(p, c.row->name, o, comm);
          std::vector<float>& seen = all[size_t(comm.rank())];
          const auto see = [&](const Tensor& x) {
            const auto v = values(x);
            seen.insert(seen.end(), v.begin(), v.end());
          };
          for (int64_t k = 0; k < steps; ++k) t.step(k), see(t.x), see(t.buffers);
          t.strategy->settle(t.worker);
          const Tensor y(t.x.shape(), kF32, p.device);
          t.strategy->write_model(t.worker, y);
          see(y);
          seen.push_back(
              float(optim::consensus_distance(comm, t.strategy->contribution(t.worker), y, p.size)));
          // What is saved comes back as it was.
          optim::Snapshot before, after;
          const auto walk = [&](Archive& a) { t.visit(a); };
          before.take(walk), before.restore(walk), after.take(walk);
          EXPECT_EQ(before, after) << c.row->name << c.flags;
          t.strategy->finish(t.worker);
          see(t.x);
        },
        how);
    return all;
  };
  const auto host = ran(again.first);
  p.device = kAside;
  EXPECT_EQ(ran(again.second), host) << c.row->name << c.flags << " wire " << how.wire;
}

TEST(Apart, EveryRowWithoutAServerIsWhatItIsOnTheHost) {
  for (const int n : {2, 4, 5})
    for (const Case& c : cases(n)) expect_same(c, n, 9, {.deadline = 20});
}

TEST(Apart, SoItIsOverANarrowWire) {
  for (const Case& c : cases(4)) expect_same(c, 4, 9, {.deadline = 20, .wire = kBF16});
}

TEST(Apart, SoItIsWithExactAveragesInBetween) {
  for (const Case& c : cases(4)) {
    const std::string name = c.row->name;
    if (name != "sgp" && name != "d-psgd" && name != "osgp" && name != "ad-psgd") continue;
    Case averaged = c;
    averaged.options.set("exact-every", "4");
    expect_same(averaged, 4, 9, {.deadline = 20});
  }
}

const std::vector<std::string> kServed = {"downpour", "dynsgd", "agn", "easgd-async", "eamsgd-async", "gem"};

TEST(Apart, EveryRowWithAServerIsWhatItIsOnTheHost) {
  Problem p{.decay = 0.01f, .noise = 1, .start_spread = 1};
  for (const std::string& row : kServed)
    for (const char* tau : {"1", "2"}) {
      const auto ran = [&](Device d) {
        p.device = d;
        Driven w(p, row, options({{"tau", tau}}), 3);
        std::vector<std::vector<float>> seen;
        for (const int turn : {0, 1, 2, 2, 0, 1, 1, 1, 0, 2}) {
          w.step_of(turn);
          seen.push_back(values(w[turn].x));
        }
        return seen;
      };
      EXPECT_EQ(ran(kAside), ran(kCpu)) << row << " --tau " << tau;
    }
}

TEST(Apart, ServersServeWorkersThatAreSavedAndEvaluated) {
  const Problem p{.decay = 0.01f, .device = kAside};
  for (const std::string& row : kServed)
    for (const bool dedicated : {false, true}) {
      std::vector<optim::Snapshot> states(3);
      const Ending half = run(p, row, options({{"tau", "1"}}), 3, dedicated, {0, 20}, nullptr, &states);
      const Ending whole = run(p, row, options({{"tau", "1"}}), 3, dedicated, {20, 120}, &states);
      for (const auto& theta : whole.theta) EXPECT_EQ(theta, whole.theta[0]) << row;
      // Chance orders the steps: the last may all be one worker's, and what a worker wants, with the
      // decay, is at most 2 - 1 / 1.01 from 2. Two gradients may be stale then, each eta times 2 from
      // where it belongs.
      EXPECT_LT(std::abs(whole.theta[0][0] - 2), 2 - 1 / 1.01 + 2 * 2 * p.lr) << row;
    }
}

TEST(Apart, AGradientIsClippedThere) {
  const Tensor g({100}, kF32, kAside);
  fill(g, 3.f);
  clip_by_norm(g, 1);
  EXPECT_NEAR(norm(g), 1, 1e-5);
}

}  // namespace
}  // namespace skein
