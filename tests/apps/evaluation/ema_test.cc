// The moving average of the weights.
#include "apps/evaluation/ema.h"

#include <gtest/gtest.h>

#include "apps/model/safetensors.h"
#include "tests/support/trainee.h"

namespace skein {
namespace {

TEST(Ema, IsItsRecurrence) {
  nn::Flat flat;
  flat.x = Tensor::of<float>({2}, {1, -2});
  flat.buffers = Tensor::of<float>({1}, {5});
  apps::Ema ema(0.7, flat);
  double x = 1, b = 5;
  for (int t = 1; t <= 40; ++t) {
    const double d = std::min(0.7, (1.0 + t) / (10.0 + t));
    EXPECT_DOUBLE_EQ(ema.decay_at(t), d);
    ema.update(Tensor::of<float>({2}, {float(t), 0}), Tensor::of<float>({1}, {float(-t)}));
    x = d * x + (1 - d) * t, b = d * b - (1 - d) * t;
  }
  EXPECT_NEAR(ema.x().data<float>()[0], x, 1e-4);
  EXPECT_NEAR(ema.buffers().data<float>()[0], b, 1e-4);
}

// Each worker averages the vector whose mean is the model: the mean of the averages is the average
// of the mean.
TEST(Ema, OfWorkersThatGossipIsThatOfTheirConsensus) {
  const trainee::Problem problem{.momentum = 0.9f, .noise = 1};
  for (const char* row : {"sgp", "d-psgd", "local-sgd", "easgd"}) {
    constexpr int kWorld = 3, kSteps = 12;
    std::vector<std::vector<std::vector<float>>> own(
        kWorld);  // contribution() of each worker after each step
    std::vector<std::vector<float>> averages(kWorld);
    auto world = comm::local_world(kWorld);
    comm::in_world(world, [&](comm::Communicator& c) {
      trainee::Trainee t(problem, row, {}, c);
      nn::Flat flat;
      flat.x = t.x, flat.buffers = t.buffers;
      apps::Ema ema(0.8, flat);
      for (int64_t k = 0; k < kSteps; ++k) {
        t.step(k);
        const Tensor x = t.strategy->contribution(t.worker);
        own[size_t(c.rank())].push_back(trainee::values(x));
        ema.update(x, t.buffers);
      }
      averages[size_t(c.rank())] = trainee::values(ema.x());
    });
    for (size_t i = 0; i < averages[0].size(); ++i) {
      double e = 0, mean = 0;
      for (int t = 1; t <= kSteps; ++t) {
        const double d = std::min(0.8, (1.0 + t) / (10.0 + t));
        double consensus = 0;
        for (const auto& w : own) consensus += w[size_t(t - 1)][i] / kWorld;
        e = d * e + (1 - d) * consensus;
      }
      for (const auto& a : averages) mean += a[i] / kWorld;
      EXPECT_NEAR(mean, e, 1e-5) << row << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace skein
