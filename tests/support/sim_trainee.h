// The small problem of trainee.h in a simulated world.
#pragma once
#include "tests/support/sim.h"
#include "tests/support/trainee.h"

namespace skein::trainee {

using comm::sim::in_sim_world;
using comm::sim::spend;
using comm::sim::Weather;

inline History train_simulated(const Problem& p, const std::string& algorithm, const optim::Options& options,
                               int n, int64_t steps, const Weather& weather) {
  History h(size_t(steps) + 1, std::vector<std::vector<float>>(static_cast<size_t>(n)));
  in_sim_world(n, weather, [&](comm::Communicator& c) { train_one(h, p, algorithm, options, c); });
  return h;
}

}  // namespace skein::trainee
