// Simulated worlds for tests: ranks are workers 0, 1, ... on virtual time, and what one throws is rethrown
// in the test.
#pragma once
#include <omp.h>

#include <numeric>

#include "comm/communicator/communicator.h"
#include "comm/sim/world.h"

namespace skein::comm::sim {

inline Tensor number(float v) { return Tensor::of<float>({1}, {v}); }

inline std::vector<Id> ids(int n) {
  std::vector<Id> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), Id(0));
  return all;
}

// Adds f(communicator) on each of n workers, which connect in epoch 1.
inline void populate(World& world, int n, std::function<void(Communicator&)> f,
                     CommunicatorOptions o = {.deadline = 20}) {
  for (Id id : ids(n))
    world.begin(id, [&world, n, f, o] {
      omp_set_num_threads(1);
      const auto transport = world.connect(1, ids(n));
      Communicator c(*transport, o);
      f(c);
    });
}

// The same in a world of its own, from its beginning to its end. Returns what the network did.
inline Counts in_sim_world(int n, const Weather& weather, const std::function<void(Communicator&)>& f,
                           CommunicatorOptions o = {.deadline = 20}) {
  World world({.weather = weather, .keeps_log = false});
  populate(world, n, f, o);
  world.run();
  return world.counts();
}

}  // namespace skein::comm::sim
