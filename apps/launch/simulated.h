// Simulated: the workers of a run as threads of this process, in the world of --simulate.
#pragma once
#include <functional>

#include "apps/config/config.h"
#include "apps/launch/job.h"
#include "apps/launch/world_file.h"

namespace skein::apps {

// What a worker knows of the world in which it lives.
struct Simulated {
  comm::sim::World& world;
  const WorldFile& file;
  comm::sim::Pace pace;
};

// Throws BadOption if flags do not go with a simulated world, or contradict this one.
void refuse_in_world(const Config&, const WorldFile&);

struct SimulatedRun {
  double stands_for = 1;  // as in WorldOptions
  bool fibers = false;
  bool silent = false;  // prints nothing
};
// As run_job(), with a thread of the world for each worker, on virtual time. At the end it says how much of
// it has passed. The log of events is written however it ends. Throws BadFile if it cannot be written, before
// the world begins if that shows by then.
int run_simulated(const JobOptions&, const WorldFile&, const std::function<int(const Member&)>& work,
                  const SimulatedRun& = {});

}  // namespace skein::apps
