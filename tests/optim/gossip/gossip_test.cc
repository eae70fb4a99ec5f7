// Gossip: peers that change by epoch, and buffers that are mixed.
#include "optim/gossip/gossip.h"

#include "tests/support/numbers/difference.h"
#include "tests/support/strategy_cases.h"

namespace skein {
namespace {

using namespace trainee;

double spread(const std::vector<std::vector<float>>& models) {
  double worst = 0;
  for (const auto& x : models) worst = differences::worse(worst, largest_difference(x, models[0]));
  return worst;
}

TEST(Gossip, ReadsPeersThatChangeByEpoch) {
  const auto o = options({{"peers", "1@0,2@3"}, {"steps-per-epoch", "4"}});
  const auto h = train({.zero_gradient = true, .start_spread = 1}, "sgp", o, 3, 13);
  EXPECT_GT(spread(h[12]), 1e-7);  // directed pairs only approach the mean of three,
  EXPECT_LT(spread(h[13]), 1e-5);  // two peers reach it at once
  for (const char* bad : {"x", "0", "1@1", "1@0,2@0", "1@0,2", "2@0,"})
    EXPECT_THROW(optim::make_strategy("sgp", options({{"peers", bad}, {"steps-per-epoch", "4"}}), 4),
                 BadOption)
        << bad;
  EXPECT_THROW(optim::make_strategy("sgp", options({{"peers", "1@0,2@3"}}), 4), BadOption);
}

TEST(Gossip, MixesBuffersWhenTold) {
  const Problem p{.zero_gradient = true, .pause = 5e-4};
  for (const char* policy : {"mix", "local"})
    for (const char* name : {"sgp", "d-psgd", "local-sgd", "osgp", "ad-psgd"}) {
      std::vector<float> last(4);
      const Case c{&optim::strategy_row(name), "", options({{"bn-policy", policy}, {"tau", "1"}})};
      begin_and_end(p, c, 4, 40, [&](Trainee& t, size_t r) { last[r] = t.buffers.data<float>()[1]; });
      for (int r = 0; r < 4; ++r)
        EXPECT_NEAR(last[size_t(r)], policy == std::string("mix") ? 1.5 : r, 1e-5) << name << ' ' << policy;
    }
  EXPECT_THROW(optim::make_strategy("sgp", options({{"bn-policy", "mixed"}}), 2), BadOption);
}

}  // namespace
}  // namespace skein
