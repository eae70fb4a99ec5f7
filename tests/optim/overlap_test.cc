// What overlap saves, measured on a simulated link: the share of transfers hidden behind work, row by row.
#include <algorithm>

#include "tests/support/sim_trainee.h"

namespace skein {
namespace {

using namespace trainee;
using comm::Cover;

constexpr double kCompute = 1,
                 kShare = 0.8;  // seconds of a step's gradient; one transfer / compute between two
constexpr int64_t kSize = 1 << 14;
constexpr int kPieces = 20;  // of a gradient, with progress made in between

struct Measured {
  double hidden = 0, slowdown = 0;         // slowdown: simulated seconds / those of the compute alone
  double hidden_by_trace = 0, worked = 0;  // the same from the spans; seconds of compute
};

// One worker's gradients take kCompute, piece by piece.
Measured train_on_link(const std::string& algorithm, const optim::Options& options, int64_t tau,
                       uint64_t seed) {
  constexpr int64_t kRounds = 6;
  const double seconds = kShare * kCompute * double(tau);
  const Weather weather{.seed = seed, .jitter = 0.002, .bandwidth = 4 * kSize / seconds, .overtaking = true};
  std::vector<Measured> all(2);
  in_sim_world(2, weather, [&](comm::Communicator& c) {
    const double began = comm::clock_seconds();
    comm::Trace trace;
    c.meter().record(&trace);
    Trainee t({.size = kSize}, algorithm, options, c);
    t.worker.oracle = [&, gradient = t.worker.oracle](const optim::Slices& slices) {
      for (int i = 0; i < kPieces; ++i) {
        spend(kCompute / kPieces);
        c.progress();
      }
      return gradient(slices);
    };
    for (int64_t k = 0; k < kRounds * tau; ++k) t.step(k);
    const comm::Traffic traffic = c.meter().traffic();
    Measured& m = all[size_t(c.rank())];
    m.worked = kCompute * double(kRounds * tau);
    m.hidden = 1 - traffic.waited / traffic.in_flight;
    m.slowdown = (comm::clock_seconds() - began) / m.worked;
    Cover flights;
    double waited = 0;
    for (const comm::Span& s : trace.spans()) {
      flights.add(s.begin, s.end);
      if (s.track == comm::Track::kWaiting) waited += s.end - s.begin;
    }
    m.hidden_by_trace = 1 - waited / flights.length();
  });
  return all[0].hidden < all[1].hidden ? all[0] : all[1];
}

Measured median_of_five(const std::string& algorithm, const optim::Options& options, int64_t tau) {
  std::vector<Measured> runs;
  for (uint64_t seed = 0; seed < 5; ++seed) runs.push_back(train_on_link(algorithm, options, tau, seed));
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.hidden < b.hidden; });
  return runs[2];
}

struct Row {
  const char* algorithm;
  int64_t tau;  // steps between two synchronizations
  double least, most;
};
const Row kRows[] = {
    {"sgp", 1, 0, 0.02},
    {"allreduce", 1, 0, 0.05},
    {"local-sgd", 4, 0, 0.02},
    {"d-psgd", 1, 0.95, 1},
    {"osgp", 1, 0.95, 1},
    {"cocod", 4, 0.95, 1},
    {"overlap-local-sgd", 4, 0.95, 1},
};

TEST(Overlap, HidesWhatIsUnderWayWhileTheNextGradientIsTaken) {
  for (const Row& row : kRows) {
    const auto flags = row.tau > 1 ? options({{"tau", std::to_string(row.tau)}}) : optim::Options{};
    const Measured m = median_of_five(row.algorithm, flags, row.tau);
    EXPECT_GE(m.hidden, row.least) << row.algorithm;
    EXPECT_LE(m.hidden, row.most) << row.algorithm;
    EXPECT_NEAR(m.hidden, m.hidden_by_trace, 1e-9) << row.algorithm;
    // What is not hidden is paid for.
    const double price = 1 + kShare * (1 - m.hidden);
    EXPECT_NEAR(m.slowdown, price, 0.1) << row.algorithm;
    RecordProperty(row.algorithm, text(m.hidden));
  }
}

}  // namespace
}  // namespace skein
