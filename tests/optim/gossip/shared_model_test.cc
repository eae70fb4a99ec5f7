// SharedModel: what an exchange conserves, whatever its two sides do meanwhile.
#include "optim/gossip/shared_model.h"

#include <array>

#include "tests/support/trainee.h"

namespace skein::optim {
namespace {

using namespace trainee;

// Two ranks exchange. `steps`: which of them take a step of -lr while the first exchange is under way.
struct Pair {
  std::vector<float> before[2], after[2];
};
Pair exchange(DType wire, std::array<bool, 2> steps, bool buffers, const char* codec = "fp32",
              int exchanges = 1) {
  Pair p;
  const Problem problem{.momentum = 0, .start_spread = 0.37f};
  const Options o = options({{"wire", codec}, {"bn-policy", buffers ? "mix" : "recompute"}});
  const Graph graph(o, 2, "bipartite-exponential", 1, true);
  const auto one = [&](comm::Communicator& c) {
    const auto me = size_t(c.rank());
    Trainee t(problem, "allreduce", {}, c);
    SharedModel model(t.worker, o, graph);
    p.before[me] = values(buffers ? t.buffers : model.x());
    model.show(t.worker);
    for (int64_t k = 0; k < exchanges; ++k) {
      model.begin_exchange(c, 1 - c.rank());
      c.push(1 - c.rank(), 1, k, 1, model.payload());
      if (steps[me] && k == 0) {
        fill(t.worker.g, 1.f);
        if (buffers) axpy(t.worker.buffers, 1.f, comm::ones(t.buffers.size()));  // as a forward pass does
        model.step(t.worker);
      }
      model.receive(c.take(1 - c.rank(), 1, k), c);
      model.go_half_way(c);
      EXPECT_FALSE(model.is_shown());
      model.show(t.worker);
    }
    p.after[me] = values(buffers ? t.buffers : model.x());
  };
  in_local_world(2, one, {.deadline = 20, .wire = wire});
  return p;
}

double sum_at(const std::vector<float> (&models)[2], size_t i) {
  return double(models[0][i]) + double(models[1][i]);
}

TEST(SharedModel, AnExchangeConservesTheSumOfThePairAndKeepsEachStep) {
  const double lr = double(Problem{}.lr);
  for (const DType wire : {kF32, kBF16})
    for (const std::array<bool, 2> steps :
         {std::array{false, false}, {true, false}, {false, true}, {true, true}})
      for (const bool buffers : {false, true}) {
        const Pair p = exchange(wire, steps, buffers);
        const double change = (steps[0] + steps[1]) * (buffers ? 1 : -lr);
        for (size_t i = 0; i < p.before[0].size(); ++i)
          EXPECT_NEAR(sum_at(p.after, i), sum_at(p.before, i) + change, 1e-5)
              << int(wire) << steps[0] << steps[1] << buffers;
      }
}

// What a codec rounds off one exchange is in the next one, and each side keeps what the other does not get.
TEST(SharedModel, CodedExchangesConserveTheSumAndBringThePairTogether) {
  for (const auto& [codec, exchanges] : {std::pair("int8", 6), {"int4", 12}, {"topk:0.3", 40}}) {
    const Pair p = exchange(kF32, {true, true}, false, codec, exchanges);
    for (size_t i = 0; i < p.before[0].size(); ++i) {
      EXPECT_NEAR(sum_at(p.after, i), sum_at(p.before, i) - 2 * double(Problem{}.lr), 1e-5) << codec;
      EXPECT_NEAR(p.after[0][i], p.after[1][i], 1e-3) << codec;
    }
  }
}

TEST(SharedModel, WithoutAStepBothSidesHaveTheSameBits) {
  const Pair p = exchange(kF32, {false, false}, false);
  EXPECT_NE(p.before[0], p.before[1]);
  EXPECT_EQ(p.after[0], p.after[1]);
}

}  // namespace
}  // namespace skein::optim
