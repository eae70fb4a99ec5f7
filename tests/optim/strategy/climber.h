// Climber: a worker of lsgd whose loss is a function of its x.
#pragma once
#include "tests/support/trainee.h"

namespace skein::trainee {

// A worker whose loss and gradient are a function of its x.
class Climber {
 public:
  using Oracle = std::function<double(const float* x, float* g)>;
  Climber(comm::Communicator& c, const optim::Options& o, std::vector<float> at, float lr, Oracle f)
      : Climber(c, o, std::move(at), lr, std::move(f), c) {}
  Climber(comm::Communicator& c, const optim::Options& o, std::vector<float> at, float lr, Oracle f,
          comm::Communicator& hub)
      : x(Tensor::of<float>({int64_t(at.size())}, at)),
        rule(optim::sgd(x, {})),
        strategy(optim::make_strategy("lsgd", o, c.size())),
        worker{x, Tensor::zeros(x.shape()), {}, *rule, lr, c, 1, {}} {
    worker.oracle = [this, f](const optim::Slices&) {
      return Tensor::of<float>({1}, {float(f(x.data<float>(), worker.g.data<float>()))});
    };
    if (&hub != &c) optim::with_server(*strategy).reach(hub);
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

}  // namespace skein::trainee
