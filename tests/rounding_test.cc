// A narrow wire takes nothing from the sum: gossip over bf16 with the rounding errors kept by the sender.
#include "comm/rounding.h"

#include <cmath>

#include "comm/averaging.h"
#include "tests/trainee.h"

namespace skein {
namespace {

using comm::Communicator;

const comm::CommunicatorOptions kNarrow{.deadline = 20, .wire = kBF16};

double sum_of(const Tensor& x) {
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i) sum += x.data<float>()[i];
  return sum;
}
double total(Communicator& c, const Tensor& x) {
  double all = 0;
  for (const auto& r : comm::gather_numbers(c, {sum_of(x)})) all += r[0];
  return all;
}
Tensor thirds(int rank) {
  Tensor x({1000});
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = float(rank + 1) / 3 + float(i) / 7000;
  return x;
}

TEST(Rounding, WhatArrivesAndWhatIsKeptIsWhatWasGiven) {
  comm::in_local_world(
      3,
      [](Communicator& c) {
        const Tensor x = thirds(c.rank()), y({x.size()});
        const std::vector<comm::Share> shares = {{(c.rank() + 1) % 3, 0.3f}, {(c.rank() + 2) % 3, 0.2f}};
        c.push(shares, 1, 0, x);
        scaled_copy(y, 0.5f, x);
        comm::keep_rounding(c, shares, y, x);
        const double before = total(c, x);
        for (int r = 1; r < 3; ++r) axpy(y, 1.f, c.take((c.rank() + r) % 3, 1, 0, y).payload);
        EXPECT_NEAR(total(c, y), before, 1e-4);  // without it: some 0.1
      },
      kNarrow);
}

TEST(Rounding, GossipingStrategiesConserveTheSumOverABf16Wire) {
  for (const char* algorithm : {"sgp", "d_psgd"}) {
    comm::in_local_world(
        5,
        [&](Communicator& c) {
          trainee::Problem p;
          p.zero_gradient = true, p.size = 1000;
          trainee::Trainee t(p, algorithm, trainee::options({{"final-average", "false"}}), &c);
          copy(t.x, thirds(c.rank()));
          t.strategy->start(t.worker);
          const double before = total(c, t.strategy->averaged(t.worker));
          for (int64_t k = 0; k < 200; ++k) t.step(k);
          EXPECT_NEAR(total(c, t.strategy->averaged(t.worker)), before, before * 1e-6) << algorithm;
        },
        kNarrow);
  }
}

TEST(Rounding, PushSumComesToTheTrueMeanOverABf16Wire) {
  comm::in_local_world(
      4,
      [](Communicator& c) {
        const Tensor x = thirds(c.rank());
        comm::AveragingOptions o{.rounds = 100};
        o.graph = [](int n, uint32_t) {
          comm::TopologyOptions t;
          t.peers = 1;
          return comm::make_topology("ring", t, n);
        };
        const auto r = comm::average(c, x, o);
        EXPECT_NEAR(r.epochs[0].end.x, r.epochs[0].begin.x, 1e-6 * r.epochs[0].begin.x);
        EXPECT_LT(r.error, 0.02);  // each is as near as one rounding leaves it
      },
      kNarrow);
}

}  // namespace
}  // namespace skein
