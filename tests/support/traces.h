// Traces of rows of strategies.def, for tests that compare them with numbers worked out by hand.
#pragma once
#include <cmath>

#include "tests/support/trainee.h"

namespace skein::trainee {

// trace[step][worker]: the first element of x after each step, for losses 0.5 (x - (i + 1))^2 of three
// workers, start 0 and rate 0.1.
inline void expect_trace(const std::string& algorithm, const optim::Options& o, const Problem& p,
                         const std::vector<std::vector<double>>& trace) {
  const auto h = train(p, algorithm, o, 3, int64_t(trace.size()));
  for (size_t t = 0; t < trace.size(); ++t)
    for (size_t i = 0; i < trace[t].size(); ++i)
      EXPECT_NEAR(h[t + 1][i][0], trace[t][i], 1e-6) << algorithm << " t=" << t + 1 << " worker " << i;
}

// The first element of a strategy's vector of this name.
inline float first_of(optim::Strategy& s, const std::string& wanted) {
  struct Reader final : Archive {
    std::string wanted;
    float found = NAN;
    bool loading() const override { return false; }
    void operator()(const std::string& name, Tensor& t) override {
      if (name == wanted) found = t.data<float>()[0];
    }
    void operator()(const std::string&, int64_t&) override {}
    void operator()(const std::string&, double&) override {}
    void operator()(const std::string&, std::string&) override {}
  } reader;
  reader.wanted = wanted;
  s.visit(reader);
  return reader.found;
}

// The same problem at step t, and what the strategy keeps.
struct Row {
  int t;
  std::vector<double> x;  // of the three workers, or of all together
  std::string name = "";  // of a vector of the strategy, and its value
  double value = 0;
};

inline void expect_trace(const std::string& algorithm, const std::string& flags,
                         const std::vector<Row>& trace) {
  in_local_world(3, [&](comm::Communicator& c) {
    Trainee t({.size = 1}, algorithm, flags_of(flags), c);
    int64_t k = 0;
    for (const Row& row : trace) {
      for (; k < row.t; ++k) t.step(k);
      const double x = row.x[row.x.size() == 1 ? 0 : size_t(c.rank())];
      EXPECT_NEAR(t.x.item(), x, 1e-6) << algorithm << " t=" << row.t << " worker " << c.rank();
      if (row.name.empty()) continue;
      EXPECT_NEAR(first_of(*t.strategy, row.name), row.value, 2e-6) << algorithm << " t=" << row.t;
    }
  });
}

using Steps = std::vector<int64_t>;
// The steps after which all workers' elements [from, to) are equal.
inline Steps meetings(const std::string& algorithm, const std::string& flags, int64_t steps,
                      const std::function<double(int64_t k)>& rate = {}, size_t from = 0, size_t to = 1) {
  History h(size_t(steps), std::vector<std::vector<float>>(2));
  in_local_world(2, [&](comm::Communicator& c) {
    Trainee t({.size = 4, .lr = 1e-3f}, algorithm, flags_of(flags), c);
    for (int64_t k = 0; k < steps; ++k) {
      if (rate) t.worker.lr = rate(k);
      t.step(k);
      h[size_t(k)][size_t(c.rank())] = values(t.x);
    }
  });
  Steps all;
  for (int64_t t = 1; t <= steps; ++t) {
    const auto& x = h[size_t(t - 1)];
    if (std::equal(x[0].begin() + long(from), x[0].begin() + long(to), x[1].begin() + long(from)))
      all.push_back(t);
  }
  return all;
}

}  // namespace skein::trainee
