// The laws that tie the algorithms together, over worlds of one to nine ranks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "tests/support/numbers/difference.h"
#include "tests/support/trainee.h"

namespace skein {
namespace {

using namespace trainee;

const Problem kHardAndApart{.momentum = 0.9f,
                            .decay = 0.01f,
                            .noise = 1,
                            .curvature_spread = 1,
                            .nesterov = true,
                            .start_spread = 0.25f};

double difference(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  double worst = 0;
  for (size_t r = 0; r < a.size(); ++r) worst = differences::worse(worst, largest_difference(a[r], b[r]));
  return worst;
}

TEST(Law, SgpOfTwoIsThePairsAverageExactly) {
  const int64_t steps = 12;
  const auto h = train(kHardAndApart, "sgp", {}, 2, steps);
  std::vector<std::vector<std::vector<float>>> expected(size_t(steps) + 1);
  Problem alone[2] = {kHardAndApart, kHardAndApart};
  for (int i = 0; i < 2; ++i) alone[i].id = [i](int) { return i; };
  Trainee a(alone[0], "sgd", {}), b(alone[1], "sgd", {});
  for (int64_t k = 0; k < steps; ++k) {
    a.step(k), b.step(k);
    for (int64_t i = 0; i < kHardAndApart.size; ++i)
      a.x.data<float>()[i] = b.x.data<float>()[i] = 0.5f * a.x.data<float>()[i] + 0.5f * b.x.data<float>()[i];
    ASSERT_EQ(h[size_t(k) + 1][0], values(a.x)) << k;
    ASSERT_EQ(h[size_t(k) + 1][1], values(a.x)) << k;
  }
}

TEST(Law, ExponentialWithAllPeersIsComplete) {
  for (int n = 1; n <= 9; ++n) {
    const auto all = options({{"peers", std::to_string(std::max(1, n - 1))}});
    EXPECT_EQ(train(kHardAndApart, "sgp", all, n, 6),
              train(kHardAndApart, "sgp", options({{"topology", "complete"}}), n, 6))
        << n;
  }
}

TEST(Law, LocalSgdOfPeriodOneIsAllReduce) {
  Problem p = kHardAndApart;
  p.start_spread = 0;
  for (int n = 1; n <= 9; ++n) {
    const auto a = train(p, "local-sgd", options({{"tau", "1"}}), n, 20),
               b = train(p, "allreduce", {}, n, 20);
    for (size_t k = 0; k < a.size(); ++k)
      EXPECT_LT(difference(a[k], b[k]), 3e-6 * double(k + 1)) << n << ' ' << k;
  }
}

TEST(Law, SgpOnTheCompleteGraphIsAllReduce) {
  Problem p = kHardAndApart;
  p.start_spread = 0;
  for (int n = 1; n <= 9; ++n) {
    const auto a = train(p, "sgp", options({{"topology", "complete"}}), n, 20),
               b = train(p, "allreduce", {}, n, 20);
    for (size_t k = 0; k < a.size(); ++k)
      EXPECT_LT(difference(a[k], b[k]), 3e-6 * double(k + 1)) << n << ' ' << k;
  }
}

// One step of noise only changes the sum of X by -eta sum u, u the same whatever the graph does.
TEST(Law, CommunicationConservesTheSum) {
  for (const char* name : {"sgp", "d-psgd"})
    for (int n = 1; n <= 9; ++n) {
      Problem p{.noise = 1, .start_spread = 1};
      const auto h = train(p, name, {}, n, 10);
      for (size_t k = 0; k + 1 < h.size(); ++k)
        for (size_t i = 0; i < size_t(p.size); i += 5) {
          double before = 0, after = 0, gradients = 0;
          for (int r = 0; r < n; ++r) {
            const float x = h[k][size_t(r)][i];
            before += x, after += h[k + 1][size_t(r)][i];
            const Draw draw{7, Purpose::kTest, k, uint32_t(r)};
            gradients += x - float(r + 1) - float(i) / 16 + (draw.unit(i) - 0.5f);
          }
          EXPECT_NEAR(after, before - 0.1 * gradients, 1e-5 * n) << name << ' ' << n;
        }
    }
}

// A graph in which weights differ from one: the sum of X and of w is conserved, z is the
// biased models' ratio.
TEST(Law, PushSumConservesXAndWOnAnyColumnStochasticGraph) {
  const std::string path = text(::testing::TempDir(), "sgp", getpid(), ".json");
  std::ofstream(path)
      << R"({"n": 3, "rounds": [{"edges": [[0,0,0.25],[0,1,0.75],[1,1,0.5],[1,2,0.5],[2,2,0.9],
      [2,0,0.1]]}, {"edges": [[0,0,1],[1,0,0.3],[1,1,0.7],[2,2,1]]}]})";
  const Problem p{.zero_gradient = true, .start_spread = 1};
  double sum_w = 0, sum_x = 0, far = 0;
  std::mutex mutex;
  in_local_world(3, [&](comm::Communicator& c) {
    Trainee t(p, "sgp", options({{"topology", "file:" + path}}), c);
    optim::Snapshot state;
    for (int64_t k = 0; k < 200; ++k) t.step(k);
    struct Weight final : Archive {
      double w = 0;
      bool loading() const override { return false; }
      void operator()(const std::string&, Tensor&) override {}
      void operator()(const std::string&, int64_t&) override {}
      void operator()(const std::string& name, double& v) override { w = name == "w" ? v : w; }
      void operator()(const std::string&, std::string&) override {}
    } weight;
    t.strategy->visit(weight);
    const std::lock_guard lock(mutex);
    sum_w += weight.w, sum_x += t.strategy->contribution(t.worker).data<float>()[0];
    far = differences::worse(far, std::abs(t.x.data<float>()[0] + 2.0));  // z: the mean of 0, -2, -4
    EXPECT_GT(std::abs(weight.w - 1), 0.01);
  });
  std::remove(path.c_str());
  EXPECT_NEAR(sum_w, 3, 1e-12);
  EXPECT_NEAR(sum_x, -6, 1e-4);
  EXPECT_LT(far, 1e-4);
}

TEST(Law, RotatingTheRanksRotatesTheResultExactly) {
  for (const char* topology : {"exponential", "ring", "bipartite-exponential", "linear"})
    for (int n = 2; n <= 8; n += 2) {
      Problem turned = kHardAndApart;
      turned.id = [n](int rank) { return (rank + 2) % n; };
      const auto o = options({{"topology", topology}, {"peers", "1"}});
      for (const char* name : {"sgp", "osgp"}) {
        const auto a = train(kHardAndApart, name, o, n, 7), b = train(turned, name, o, n, 7);
        for (int r = 0; r < n; ++r)
          EXPECT_EQ(a[7][size_t((r + 2) % n)], b[7][size_t(r)]) << name << topology << n;
      }
    }
}

TEST(Law, PermutingTheRanksPermutesTheResult) {
  for (const char* name : {"allreduce", "local-sgd"})
    for (int n = 2; n <= 9; ++n) {
      Problem turned = kHardAndApart;
      turned.start_spread = name == std::string("allreduce") ? 0 : 0.25f;
      Problem straight = turned;
      turned.id = [n](int rank) { return n - 1 - rank; };
      const auto a = train(straight, name, {}, n, 10), b = train(turned, name, {}, n, 10);
      for (int r = 0; r < n; ++r)
        EXPECT_LT(largest_difference(a[10][size_t(n - 1 - r)], b[10][size_t(r)]), 1e-5) << name << n;
    }
}

}  // namespace
}  // namespace skein
