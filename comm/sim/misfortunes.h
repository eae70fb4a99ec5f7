// Misfortunes: what happens to the workers of a simulated world by itself.
#pragma once
#include "comm/sim/world.h"

namespace skein::comm::sim {

// How often in a second of the whole world, and for how long on average.
struct Rates {
  double kills = 0, hangs = 0, cuts = 0;
  double hang_seconds = 5, cut_seconds = 5;
  size_t spared = 1;  // so many workers are left alive
};

// As the world's seed decides, from now until that second.
void suffer(World&, const Rates&, double until);

}  // namespace skein::comm::sim
