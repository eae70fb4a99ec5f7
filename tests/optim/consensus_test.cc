// The mean of the models, and the distance from it.
#include "optim/consensus.h"

#include <cmath>

#include "tests/support/trainee.h"

namespace skein {
namespace {

using namespace trainee;

TEST(Consensus, IsTheMeanAndTheDistanceFromIt) {
  in_local_world(3, [](comm::Communicator& c) {
    const Tensor x = Tensor::of<float>({2}, {float(c.rank()), 5}), mean({2});
    optim::consensus(c, x, mean);
    EXPECT_EQ(values(mean), (std::vector<float>{1, 5}));
    EXPECT_EQ(x.data<float>()[0], float(c.rank()));
    EXPECT_NEAR(optim::consensus_distance(c, x, mean, 2), std::sqrt(2.0 / 3 / 2), 1e-6);
  });
  const Tensor x = Tensor::of<float>({1}, {3}), mean({1});
  comm::WorldOfOne alone;
  optim::consensus(alone, x, mean);
  EXPECT_EQ(mean.item(), 3);
  EXPECT_EQ(optim::consensus_distance(alone, x, mean, 1), 0);
}

}  // namespace
}  // namespace skein
