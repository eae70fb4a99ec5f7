// SparseLoCo: its trace to the digit under both means, what is never lost, and what it sends.
#include "tests/support/peek.h"
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

// Three workers with the same gradients in every step send one number of four: their largest residual.
TEST(SparseLoCo, FollowsItsTrace) {
  const std::vector<std::vector<double>> all = {{-.5, 0, 0, -.266927},
                                                {-.5, -.667969, -.266927, -.266927},
                                                {-1.5, -.667969, -.266927, -.800781},
                                                {-1.5, -1.332031, -.532552, -.800781},
                                                {-2.497396, -1.332031, -.532552, -1.332031}},
                                         senders = {{-.75, 0, 0, -.800781},
                                                    {-.75, -1.001953, -.800781, -.800781},
                                                    {-2.25, -1.001953, -.800781, -2.402344},
                                                    {-2.25, -1.998047, -1.597656, -2.402344},
                                                    {-3.746094, -1.998047, -1.597656, -3.996094}};
  for (const auto& [mean, trace] : {std::pair("all", all), {"senders", senders}})
    in_local_world(3, [&, word = mean, want = trace](comm::Communicator& c) {
      const float gradients[3][4] = {{8, 4, 2, 1}, {1, 2, 4, 8}, {7, 6, 1, 1}};
      Trainee t({.size = 4}, "sparseloco",
                options({{"tau", "1"}, {"density", "0.25"}, {"sparse-mean", word}}), c);
      t.worker.oracle = [&](const optim::Slices&) {
        std::copy_n(gradients[c.rank()], 4, t.g.data<float>());
        return Tensor::zeros({1});
      };
      for (int64_t k = 0; k < 5; ++k) {
        t.step(k);
        for (size_t e = 0; e < 4; ++e)
          EXPECT_NEAR(values(t.x)[e], want[size_t(k)][e], 1e-5) << word << ' ' << k << ' ' << e;
      }
    });
}

// Without decay, all that workers have done is in the anchor or in a residual.
TEST(SparseLoCo, WhatIsNotSentIsOwed) {
  in_local_world(4, [](comm::Communicator& c) {
    Trainee t({.size = 5000, .noise = 1}, "sparseloco",
              options({{"tau", "3"}, {"density", "0.02"}, {"residual-decay", "1"}}), c);
    const Tensor done = Tensor::zeros(t.x.shape());
    for (int64_t k = 0; k < 12; ++k) t.step(k), axpy(done, 0.1f, t.g);
    const std::vector<float> residual = Peek(*t.strategy).vectors.at("residual");
    const Tensor owed = Tensor::zeros(t.x.shape());
    std::copy(residual.begin(), residual.end(), owed.data<float>());
    c.mean(done).wait(), c.mean(owed).wait();
    for (int64_t i = 0; i < 5000; ++i)
      EXPECT_NEAR(-t.x.data<float>()[i] + owed.data<float>()[i], done.data<float>()[i],
                  2e-5 + 1e-6 * std::abs(done.data<float>()[i]))
          << i;
  });
}

TEST(SparseLoCo, SendsItsPartOfTheModelOnceARound) {
  constexpr int64_t kSize = 1 << 18;
  in_local_world(3, [](comm::Communicator& c) {
    Trainee t({.size = kSize}, "sparseloco", options({{"tau", "4"}}), c);
    for (int64_t k = 0; k < 8; ++k) t.step(k);
    EXPECT_NEAR(double(c.meter().traffic().bytes), 2 * 2 * 0.01 * 4 * kSize, 0.02 * 0.16 * kSize);
  });
}

TEST(SparseLoCo, RefusesUnknownMeansAndPartsOfNothing) {
  for (const auto& [flag, value] : {std::pair("sparse-mean", "some"), {"density", "0"}, {"density", "2"}})
    EXPECT_THROW(optim::make_strategy("sparseloco", options({{flag, value}}), 2), BadOption) << flag;
}

}  // namespace
}  // namespace skein
