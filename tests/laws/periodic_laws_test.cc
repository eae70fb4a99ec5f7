// The laws that tie periodic averaging and its kin together, over worlds of one to seventeen workers.
#include <cmath>

#include "tests/support/sim_trainee.h"

namespace skein {
namespace {

using namespace trainee;

constexpr int kMost = 17;
const Problem kHard{.momentum = 0.9f, .decay = 0.01f, .noise = 1, .curvature_spread = 1, .nesterov = true};
// Numbers are below 32, whose ulp is 2e-6: each side rounds a few times a step, and errors shrink.
constexpr double kUlp = 2e-6;

History run(const std::string& line, int n, int64_t steps, const Problem& p = kHard) {
  const size_t space = std::min(line.find(' '), line.size());
  return train(p, line.substr(0, space), flags_of(line.substr(space)), n, steps);
}

void expect_same_bits(const std::string& a, const std::string& b, const Problem& p = kHard) {
  for (int n = 1; n <= kMost; ++n)
    EXPECT_EQ(run(a, n, 7, p), run(b, n, 7, p)) << a << " = " << b << ", n " << n;
}

// After k steps within `ulps` of the largest numbers, and as many more a step.
void expect_close(const std::string& a, const std::string& b, double ulps, const Problem& p = kHard) {
  for (int n = 1; n <= kMost; ++n) {
    const History x = run(a, n, 10, p), y = run(b, n, 10, p);
    for (size_t k = 0; k < x.size(); ++k)
      for (size_t r = 0; r < size_t(n); ++r)
        ASSERT_LE(largest_difference(x[k][r], y[k][r]), ulps * kUlp * double(k + 1))
            << a << " = " << b << ", n " << n << ", step " << k << ", worker " << r;
  }
}

// One worker's plain SGD; `at` is called after each step and may write x.
template <class F>
std::vector<std::vector<float>> alone(int id, int64_t steps, F at) {
  Problem p = kHard;
  p.id = [id](int) { return id; };
  Trainee t(p, "sgd", {});
  std::vector<std::vector<float>> h;
  for (int64_t k = 0; k < steps; ++k) {
    t.step(k);
    at(k, t.x.data<float>(), t.x.size());
    h.push_back(values(t.x));
  }
  return h;
}

// ---- bit for bit ----------------------------------------------------------------------------------------
TEST(ExactLaw, QsrWithoutItsConstantIsLocalSgd) {
  expect_same_bits("qsr --tau 3 --qsr-c 0", "local-sgd --tau 3");
}
TEST(ExactLaw, PostLocalFromTheStartIsLocalSgd) {
  expect_same_bits("post-local --tau 3 --switch-step 0", "local-sgd --tau 3");
  expect_same_bits("post-local --tau 3 --switch-step 7", "allreduce");
}
TEST(ExactLaw, StreamingInOnePieceWithoutDelayIsDiLoCo) {
  expect_same_bits("streaming-diloco --tau 3 --fragments 1 --delay 0 --mix 0", "diloco --tau 3");
}
TEST(ExactLaw, OverlapWithoutPullNeverTouchesX) {
  for (int n = 1; n <= kMost; ++n) {
    const History h = run("overlap-local-sgd --tau 2 --alpha 0", n, 9);
    for (int r = 0; r < n; ++r) {
      const auto plain = alone(r, 9, [](int64_t, float*, int64_t) {});
      for (size_t k = 0; k < 9; ++k) ASSERT_EQ(h[k + 1][size_t(r)], plain[k]) << n << ' ' << r << ' ' << k;
    }
  }
}
TEST(ExactLaw, AllReduceInTwoLevelsWithOneNodeIsFlat) {
  Problem p = kHard;
  p.uneven_batches = true;
  for (const char* nodes : {"17", "host", "1"})  // all in one, all who share memory, each on its own
    expect_same_bits(text("allreduce --hierarchy ", nodes), "allreduce", p);
  for (int n : {1, 4, 7}) {  // no rank sees another's memory
    EXPECT_EQ(train_simulated(p, "allreduce", flags_of("--hierarchy host"), n, 6, {}),
              run("allreduce", n, 6, p));
  }
}
TEST(ExactLaw, AllReduceInTwoLevelsGivesAllWorkersTheSameBits) {
  for (int n = 1; n <= kMost; ++n)
    for (int nodes : {2, 3, 4, 5}) {
      const History h = run(text("allreduce --hierarchy ", nodes), n, 5);
      for (const auto& x : h)
        EXPECT_EQ(x, std::vector<std::vector<float>>(size_t(n), x[0])) << n << ' ' << nodes;
    }
}

// ---- within a few ulps ----------------------------------------------------------------------------------
TEST(CloseLaw, LocalSgdOfPeriodOneIsAllReduce) { expect_close("local-sgd --tau 1", "allreduce", 2); }
TEST(CloseLaw, AllReduceInTwoLevelsIsFlat) {
  for (int nodes : {2, 5}) expect_close(text("allreduce --hierarchy ", nodes), "allreduce", 2);
}
TEST(CloseLaw, SlowMoWithoutMomentumIsLocalSgd) {
  expect_close("slowmo --tau 3 --beta 0 --alpha 1", "local-sgd --tau 3", 2);
}
TEST(CloseLaw, DiLoCoOfRateOneWithoutMomentumIsLocalSgd) {
  expect_close("diloco --tau 3 --outer-momentum 0 --outer-lr 1", "local-sgd --tau 3", 2);
}
TEST(CloseLaw, SlowMoIsBmufWhereTheRateIsConstant) {
  for (const char* rate : {"1", "0.6"})
    expect_close(text("slowmo --tau 3 --beta 0.5 --alpha ", rate),
                 text("bmuf --tau 3 --beta 0.5 --zeta ", rate), 3);
}
TEST(CloseLaw, BmufWithNesterovIsDiLoCo) {
  expect_close("bmuf --tau 3 --outer-nesterov on --zeta 0.7 --beta 0.6",
               "diloco --tau 3 --outer-lr 0.7 --outer-momentum 0.6", 3);
}
TEST(CloseLaw, AloneEachRowIsItsOneWorkerForm) {
  const int64_t steps = 20, tau = 4;
  std::vector<double> z(size_t(kHard.size), 0), m(size_t(kHard.size), 0);
  // x <- z at the end of a round, z moved by f(z, m, x).
  const auto form = [&](auto f) {
    std::fill(z.begin(), z.end(), 0.0), std::fill(m.begin(), m.end(), 0.0);
    return alone(0, steps, [&](int64_t k, float* x, int64_t n) {
      for (int64_t i = 0; i < n && (k + 1) % tau == 0; ++i)
        f(z[size_t(i)], m[size_t(i)], double(x[i])), x[i] = float(z[size_t(i)]);
    });
  };
  const auto expect = [&](const std::string& line, const std::vector<std::vector<float>>& h) {
    const History mine = run(line, 1, steps);
    for (size_t k = 0; k < h.size(); ++k)
      EXPECT_LE(largest_difference(mine[k + 1][0], h[k]), 2 * kUlp * double(k + 1)) << line << ' ' << k;
  };
  expect("slowmo --tau 4 --beta 0.5 --alpha 0.8",
         form([](double& z, double& m, double x) { m = 0.5 * m + (z - x) / 0.1, z -= 0.8 * 0.1 * m; }));
  expect("bmuf --tau 4 --beta 0.6 --zeta 0.9",
         form([](double& z, double& d, double x) { d = 0.6 * d + 0.9 * (x - z), z += d; }));
  expect("diloco --tau 4", form([](double& z, double& m, double x) {  // SNOO
           const double delta = z - x;
           m = 0.9 * m + delta, z -= 0.7 * (0.9 * m + delta);
         }));
  expect("cocod --tau 4", alone(0, steps, [](int64_t, float*, int64_t) {}));
}

TEST(CloseLaw, EasgdConservesModelsAndCenterInTheExchange) {
  const Problem p{.noise = 1};
  for (int n = 1; n <= kMost; ++n) {
    std::vector<std::vector<float>> centers(9);
    History h(9, std::vector<std::vector<float>>(size_t(n)));
    in_local_world(n, [&](comm::Communicator& c) {
      Trainee t(p, "easgd", flags_of("--tau 1"), c);
      for (size_t k = 0; k < 9; ++k) {
        h[k][size_t(c.rank())] = values(t.x);
        if (c.rank() == 0) centers[k] = values(t.strategy->contribution(t.worker));
        t.step(int64_t(k));
      }
    });
    for (size_t k = 0; k + 1 < 9; ++k)
      for (size_t i = 0; i < size_t(p.size); i += 5) {
        double before = centers[k][i], after = centers[k + 1][i];
        for (int r = 0; r < n; ++r) {
          const Draw draw{7, Purpose::kTest, k, uint32_t(r)};
          const float x = h[k][size_t(r)][i];
          before += x - 0.1 * (x - float(r + 1) - float(i) / 16 + (draw.unit(i) - 0.5f));
          after += h[k + 1][size_t(r)][i];
        }
        EXPECT_NEAR(after, before, kUlp * (n + 1)) << n << ' ' << k;
      }
  }
}

// Per round the mean of the models goes (1 - alpha) of what local steps make of it.
TEST(CloseLaw, OverlapWithoutMomentumProgressesByOneMinusAlpha) {
  const Problem p{.noise = 1};
  for (int n = 1; n <= kMost; ++n)
    for (double alpha : {0.3, 0.6}) {
      const History h = run(text("overlap-local-sgd --tau 2 --beta 0 --alpha ", alpha), n, 8, p);
      for (size_t t = 2; t <= 8; t += 2)
        for (size_t i = 0; i < size_t(p.size); i += 5) {
          double start = 0, end = 0, progress = 0;
          for (size_t r = 0; r < size_t(n); ++r) {
            const Draw draw{7, Purpose::kTest, t - 1, uint32_t(r)};
            const float x0 = h[t - 2][r][i], x1 = h[t - 1][r][i];
            const double x2 = x1 - 0.1 * (x1 - float(r + 1) - float(i) / 16 + (draw.unit(i) - 0.5f));
            start += x0, progress += x2 - x0, end += h[t][r][i];
          }
          EXPECT_NEAR((end - start) / n, (1 - alpha) * progress / n, 2 * kUlp) << n << ' ' << t;
        }
    }
}

TEST(CloseLaw, AnyPermutationOfTheWorkersPermutesTheResult) {
  for (const std::string line :
       {"allreduce --hierarchy 3", "post-local --tau 3 --switch-step 4", "qsr --tau 2 --qsr-c 0.17",
        "slowmo --tau 3", "bmuf --tau 3", "overlap-local-sgd --tau 3", "cocod --tau 3", "easgd --tau 3",
        "diloco --tau 3", "streaming-diloco --tau 3 --fragments 2 --delay 1"})
    for (int n = 2; n <= kMost; n += 3) {
      Problem turned = kHard;
      const auto other = [n](int rank) { return (rank * (n % 5 == 0 ? 3 : 5) + 2) % n; };
      turned.id = other;
      const History a = run(line, n, 10), b = run(line, n, 10, turned);
      for (int r = 0; r < n; ++r)
        EXPECT_LE(largest_difference(a[10][size_t(other(r))], b[10][size_t(r)]), 40 * kUlp)
            << line << ' ' << n;
    }
}

}  // namespace
}  // namespace skein
