// Workers with other shares of the global batch than each other: what all learn together is
// weighed by images.
#include "comm/communicator/words.h"
#include "tests/support/strategy_cases.h"

namespace skein {
namespace {

using namespace trainee;

constexpr int kWorkers = 4;
constexpr int64_t kSteps = 12;  // all of the cases have just averaged
const std::vector<int64_t> kShares = {1, 2, 3, 2};
double share_of(int rank) { return double(kShares[size_t(rank)]) / 8; }
bool averages(const std::string& row) { return optim::strategy_row(row).model == optim::Model::kMean; }

// Where models are averaged by Worker::weight, the mean that they have in common is weighed, too.
std::vector<double> mean_model(Trainee& t, comm::Communicator& c, double weight) {
  std::vector<double> mine;
  const Tensor x = t.strategy->contribution(t.worker);
  for (const float v : values(x)) mine.push_back(weight * double(v));
  std::vector<double> sum(mine.size());
  for (const auto& one : comm::gather_numbers(c, mine))
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  return sum;
}

// Worker r's images have the slope r + 1 everywhere; `uneven`: they are kShares[r] of a step, else all of
// them are of one kind, with the slope that the images of a step have on average.
void take_steps(Trainee& t, int rank, const std::string& row, bool uneven, int64_t steps) {
  const double share = share_of(rank);
  double slope = 0;
  for (int r = 0; r < kWorkers; ++r) slope += share_of(r) * (r + 1);
  if (uneven) slope = rank + 1;
  if (uneven) t.worker.weight = t.worker.share = share;
  if (uneven && !averages(row)) t.worker.lr *= share * kWorkers;
  t.worker.oracle = [&t, slope](const optim::Slices& slices) {
    fill(t.g, float(slope));
    if (slices) slices.ready(t.g), slices.complete();
    return Tensor::of<float>({1}, {0.f});
  };
  for (int64_t k = 0; k < steps; ++k) t.step(k);
}

std::vector<double> learned(const std::string& row, const optim::Options& o, bool uneven) {
  std::vector<double> model;
  in_local_world(kWorkers, [&](comm::Communicator& c) {
    Trainee t({.size = 5}, row, o, c);
    take_steps(t, c.rank(), row, uneven, kSteps);
    t.strategy->settle(t.worker);
    const bool weighed = uneven && averages(row);
    if (optim::strategy_row(row).center()) {
      const Tensor y = t.x.clone();
      t.strategy->write_model(t.worker, y);
      if (c.rank() == 0)
        for (const float v : values(y)) model.push_back(double(v));
    } else if (auto mean = mean_model(t, c, weighed ? share_of(c.rank()) : 1.0 / kWorkers); c.rank() == 0) {
      model = mean;
    }
    t.strategy->finish(t.worker);
  });
  return model;
}

void expect_weighed(const std::string& row, const optim::Options& o) {
  const std::vector<double> uneven = learned(row, o, true), even = learned(row, o, false);
  ASSERT_EQ(uneven.size(), even.size());
  ASSERT_LT(even[0], -0.1);  // it has moved
  for (size_t i = 0; i < even.size(); ++i) EXPECT_NEAR(uneven[i], even[i], 2e-5 * std::abs(even[i]));
}

// Slopes do not depend on the model here, so what all learn together is linear in them.
TEST(Uneven, WhatRowsLearnIsWeighedByImages) {
  for (Case one : cases(kWorkers)) {
    const std::string name = one.row->name;
    if (name == "lsgd" || one.coded()) continue;  // refused; rounded
    // Workers pull at steps of their own; only the largest differences travel.
    if (name == "palsgd" || name == "sparseloco") continue;
    if (name == "dppf") one.options.set("push", "0");  // else it depends on how far they are apart
    SCOPED_TRACE(name + one.flags);
    expect_weighed(name, one.options);
  }
}

// What is evaluated and saved while workers are apart: in the middle of a round, or of gossip.
void expect_model_of_all(const std::string& row, const optim::Options& o) {
  in_local_world(kWorkers, [&](comm::Communicator& c) {
    Trainee t({.size = 5}, row, o, c);
    take_steps(t, c.rank(), row, true, kSteps - 1);
    t.strategy->settle(t.worker);
    const Tensor y(t.x.shape());
    t.strategy->write_model(t.worker, y);
    const std::vector<double> mean = mean_model(t, c, averages(row) ? share_of(c.rank()) : 1.0 / kWorkers);
    for (size_t i = 0; i < mean.size(); ++i)
      EXPECT_NEAR(values(y)[i], mean[i], 2e-6 * std::abs(mean[i])) << c.rank();
    t.strategy->finish(t.worker);
  });
}

TEST(Uneven, TheModelBetweenRoundsIsWeighedByImages) {
  for (const Case& one : cases(kWorkers)) {
    if (std::string(one.row->name) == "lsgd") continue;  // refused
    SCOPED_TRACE(one.row->name + one.flags);
    expect_model_of_all(one.row->name, one.options);
  }
}

// Without staleness in a row's rule the order of commits does not matter, either.
TEST(Uneven, WhatACenterLearnsIsWeighedByImages) {
  for (const char* row : {"downpour", "agn"}) {
    SCOPED_TRACE(row);
    expect_weighed(row, options({{"tau", "2"}}));
  }
}

}  // namespace
}  // namespace skein
