// SharedModel: what an exchange conserves, whatever its two sides do meanwhile.
#include "optim/gossip/shared_model.h"

#include <array>

#include "tests/support/trainee.h"

namespace skein::optim {
namespace {

using namespace trainee;

// Two ranks exchange once. `steps`: which of them take a step of -lr while the exchange is under way.
struct Pair {
  std::vector<float> before[2], after[2];
};
Pair exchange_once(DType wire, std::array<bool, 2> steps, bool buffers) {
  Pair p;
  const Problem problem{.momentum = 0, .start_spread = 0.37f};
  const auto one = [&](comm::Communicator& c) {
    const auto me = size_t(c.rank());
    Trainee t(problem, "allreduce", {}, c);
    SharedModel model(t.worker, buffers);
    p.before[me] = values(buffers ? t.buffers : model.x());
    model.show(t.worker);
    model.begin_exchange(c);
    c.push(1 - c.rank(), 1, 0, 1, model.sent());
    if (steps[me]) {
      fill(t.worker.g, 1.f);
      if (buffers) axpy(t.worker.buffers, 1.f, comm::ones(t.buffers.size()));  // as a forward pass does
      model.step(t.worker);
    }
    model.receive(c.take(1 - c.rank(), 1, 0), c);
    model.go_half_way(c);
    EXPECT_FALSE(model.is_shown());
    model.show(t.worker);
    p.after[me] = values(buffers ? t.buffers : model.x());
  };
  in_local_world(2, one, {.deadline = 20, .wire = wire});
  return p;
}

TEST(SharedModel, AnExchangeConservesTheSumOfThePairAndKeepsEachStep) {
  const double lr = double(Problem{}.lr);
  for (const DType wire : {kF32, kBF16})
    for (const std::array<bool, 2> steps :
         {std::array{false, false}, {true, false}, {false, true}, {true, true}})
      for (const bool buffers : {false, true}) {
        const Pair p = exchange_once(wire, steps, buffers);
        const double change = (steps[0] + steps[1]) * (buffers ? 1 : -lr);
        for (size_t i = 0; i < p.before[0].size(); ++i)
          EXPECT_NEAR(double(p.after[0][i]) + p.after[1][i], double(p.before[0][i]) + p.before[1][i] + change,
                      1e-5)
              << int(wire) << steps[0] << steps[1] << buffers;
      }
}

TEST(SharedModel, WithoutAStepBothSidesHaveTheSameBits) {
  const Pair p = exchange_once(kF32, {false, false}, false);
  EXPECT_NE(p.before[0], p.before[1]);
  EXPECT_EQ(p.after[0], p.after[1]);
}

}  // namespace
}  // namespace skein::optim
