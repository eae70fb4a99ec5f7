// The world that a probe has found, for the simulator.
#pragma once
#include "apps/plan/probe.h"

namespace skein::apps {

// Hosts are those of the probe, in its order. Throws Error if the workers of a host do not follow each other.
WorldFile world_of(const Probed&);

// Worlds that differ in one thing, which tell what that thing costs.
WorldFile without_network_bounds(WorldFile);
WorldFile without_stragglers(WorldFile);

}  // namespace skein::apps
