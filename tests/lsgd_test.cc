// Leader SGD: its traces, its laws, the landscape it was made for, and workers of different speeds.
#include <atomic>
#include <cmath>
#include <mutex>

#include "optim/leaders.h"
#include "optim/lease_servers.h"
#include "tests/files.h"
#include "tests/trainee.h"

namespace skein {
namespace {

using namespace trainee;
using optim::Turn;

// A worker whose loss and gradient are a function of its x.
class Climber {
 public:
  using Oracle = std::function<double(const float* x, float* g)>;
  Climber(comm::Communicator& c, const optim::Options& o, std::vector<float> at, float lr, Oracle f)
      : x(Tensor::of<float>({int64_t(at.size())}, at)),
        rule(optim::sgd(x, {})),
        strategy(optim::make_strategy("lsgd", o, c.size())),
        worker{x, Tensor::zeros(x.shape()), {}, *rule, lr, &c, 1, c.size(), {}} {
    worker.oracle = [this, f](const optim::GradReady&) {
      return Tensor::of<float>({1}, {float(f(x.data<float>(), worker.g.data<float>()))});
    };
    strategy->start(worker);
  }
  // In lockstep: everybody meets after every step, and rounds are done where they are due.
  void step(int64_t k) {
    strategy->iterate(worker, k);
    strategy->settle(worker);
  }
  Tensor x;
  std::unique_ptr<optim::Rule> rule;
  std::unique_ptr<optim::Strategy> strategy;
  optim::Worker worker;
};

// ---- the landscape sin(pi r) / (pi r) --------------------------------------------------------------------------------

const float kStarts[4][2] = {{-6, -4}, {-15, -18}, {20, 11}, {17, 8}};
constexpr double kGlobalMinimum = -0.2172336282, kSecondMinimum = -0.0913252028;

double landscape(const float* x, float* g) {
  const double r = std::hypot(x[0], x[1]), a = M_PI * r;
  const double slope = (a * std::cos(a) - std::sin(a)) / (a * r);  // df/dr
  for (int i = 0; i < 2; ++i) g[i] = float(slope * x[i] / r);
  return std::sin(a) / a;
}

std::vector<double> climb(double lr, double c, const optim::Options& more, bool lockstep) {
  optim::Options o = more;
  o.set("c-global", std::to_string(c)), o.set("c-local", std::to_string(c));
  std::vector<double> reached(4);
  in_local_world(4, [&](comm::Communicator& comm) {
    const auto& at = kStarts[comm.rank()];
    Climber w(comm, o, {at[0], at[1]}, float(lr), landscape);
    for (int64_t k = 0; k < 800; ++k)
      if (lockstep)
        w.step(k);
      else
        w.strategy->iterate(w.worker, k);
    w.strategy->settle(w.worker);
    std::vector<float> g(2);
    reached[size_t(comm.rank())] = landscape(w.x.data<float>(), g.data());
  });
  return reached;
}

TEST(Lsgd, ReachesTheGlobalMinimumOfTheLandscape) {
  const auto each_step = options({{"tau-local", "1"}, {"tau-global", "1"}});
  const auto two_groups = options({{"tau-local", "1"}, {"tau-global", "4"}, {"groups", "2"}});
  for (double lr : {.05, .1})
    for (double c : {.05, .1, .2})
      for (double f : climb(lr, c, each_step, true)) EXPECT_NEAR(f, kGlobalMinimum, 1e-4) << lr << ' ' << c;
  for (double f : climb(.1, .1, two_groups, true)) EXPECT_NEAR(f, kGlobalMinimum, 1e-4);
  for (double f : climb(.1, .1, each_step, false)) EXPECT_NEAR(f, kGlobalMinimum, 1e-4) << "asynchronous";
}

// Elastic averaging from the same starts with the same pulls, as the papers compare them.
TEST(Lsgd, WhereElasticAveragingSticksAtTheSecondMinimum) {
  for (double lr : {.05, .1})
    for (double alpha : {.05, .1, .2}) {
      float x[4][2], z[2] = {0, 0}, g[2];
      for (int w = 0; w < 4; ++w)
        for (int i = 0; i < 2; ++i) x[w][i] = kStarts[w][i], z[i] += kStarts[w][i] / 4;
      for (int k = 0; k < 20000; ++k) {
        float sum[2] = {0, 0};
        for (auto& at : x) {
          landscape(at, g);
          for (int i = 0; i < 2; ++i) {
            const float off = at[i] - z[i];
            at[i] -= float(lr) * g[i] + float(alpha) * off;
            sum[i] += float(alpha) * off;
          }
        }
        for (int i = 0; i < 2; ++i) z[i] += sum[i];
      }
      EXPECT_NEAR(landscape(z, g), kSecondMinimum, 2e-3) << lr << ' ' << alpha;
    }
}

}  // namespace
}  // namespace skein
