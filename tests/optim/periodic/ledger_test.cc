// No sample is lost with a worker: what each has added to the models is counted in the models themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>

#include "optim/whole_step.h"
#include "tests/support/trainee.h"

namespace skein::optim {
namespace {

constexpr int64_t kBatch = 12, kSteps = 24;

// A worker whose sample j moves x[j] alone, so that in the mean over a batch of n samples it moves it by 1 /
// n, and in the models of all by 1 / kBatch.
class Counting {
 public:
  Counting(const std::string& line, comm::Communicator& c)
      : rule(sgd(x, {.decayed = x.size()})),
        strategy(make_strategy(line.substr(0, line.find(' ')), trainee::flags_of(line.substr(line.find(' '))),
                               c.size())),
        worker{.x = x, .g = g, .buffers = {}, .rule = *rule, .lr = 1, .comm = c, .oracle = {}},
        first(kBatch * c.rank() / c.size()),
        end(kBatch * (c.rank() + 1) / c.size()),
        steps(
            4, [this](Archive& a) { visit(a); }, shared()) {
    worker.share = double(end - first) / kBatch;
    if (kBatch % c.size()) worker.weight = worker.share;
    worker.oracle = [this](const Slices& slices) {
      fill(g, 0.f);
      for (int64_t i = first; i < end; ++i) g.data<float>()[k * kBatch + i] = -1.f / float(end - first);
      if (slices) slices.ready(g), slices.complete();
      return Tensor::zeros({1});
    };
    strategy->start(worker);
  }
  void step() {
    steps.run(k, [&] { strategy->iterate(worker, k); });
    settled = steps.settled(++k);
  }
  void visit(Archive& a) {
    a("x", x);
    Under s(a, "strategy.");
    strategy->visit(s);
  }
  Shared shared() {
    Shared all = shared_states(*strategy);
    if (all.arrived)
      all.arrived = [arrived = all.arrived](Archive& a) {
        Under s(a, "strategy.");
        arrived(s);
      };
    return all;
  }

  Tensor x = Tensor::zeros({kBatch * kSteps}), g = Tensor::zeros(x.shape());
  std::unique_ptr<Rule> rule;
  std::unique_ptr<Strategy> strategy;
  Worker worker;
  const int64_t first, end;
  WholeStep steps;
  int64_t k = 0, settled = 0;
};

// What the workers of one epoch of the membership take along.
struct Left {
  int64_t step = 0;
  std::vector<Snapshot> states;  // by rank
};

// All train on to step `until` and go back to what is settled.
Left train(const std::string& line, const Left& before, int n, int64_t until, Tensor* model) {
  auto world = comm::local_world(n);
  std::mutex mutex;
  Left after{.step = until, .states = std::vector<Snapshot>(size_t(n))};
  comm::in_world(world, [&](comm::Communicator& c) {
    const size_t me = size_t(c.rank());
    Counting one(line, c);
    const auto walk = [&](Archive& a) { one.visit(a); };
    Snapshot own = before.states.empty() ? Snapshot() : before.states[me];
    if (!before.states.empty()) own.restore(walk);
    one.k = one.settled = before.step;
    while (one.k < until) one.step();
    if (until == kSteps) {
      one.strategy->settle(one.worker);
      one.strategy->finish(one.worker);
      Tensor y(one.x.shape());
      one.strategy->write_model(one.worker, y);
      if (me == 0) *model = y;
      return;
    }
    {
      const std::lock_guard lock(mutex);
      after.step = std::min(after.step, one.settled);
    }
    c.barrier();
    if (one.steps.knows(after.step)) one.steps.go_back(after.step);
    after.states[me].take(walk);
    c.barrier();  // while one of them is still there, means under way may write
  });
  return after;
}

// From five workers, whose shares of a batch differ, some worker is lost twice.
TEST(Ledger, CountsEverySampleOnceWhenWorkersAreLost) {
  for (const std::string line :
       {"local-sgd --tau 4", "post-local --tau 4 --switch-step 5", "qsr --tau 4 --qsr-c 0",
        "slowmo --tau 4 --beta 0", "bmuf --tau 3 --beta 0", "cocod --tau 3", "cocod --tau 1",
        "diloco --tau 4 --outer-lr 1 --outer-momentum 0 --outer-nesterov off", "allreduce "})
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      std::mt19937_64 random(seed);
      Left left;
      Tensor model;
      int64_t until = 0;
      for (int n = 5; n >= 3; --n) {
        until = n == 3 ? kSteps : std::min<int64_t>(until + 1 + int64_t(random() % 11), kSteps - 1);
        left = train(line, left, n, std::max(until, left.step), &model);
        if (n > 3) left.states.erase(left.states.begin() + std::ptrdiff_t(random() % size_t(n)));
      }
      for (int64_t j = 0; j < model.size(); ++j)
        ASSERT_NEAR(model.data<float>()[j] * kBatch, 1, 1e-5)
            << line << " seed " << seed << " step " << j / kBatch << " sample " << j % kBatch;
    }
}

}  // namespace
}  // namespace skein::optim
