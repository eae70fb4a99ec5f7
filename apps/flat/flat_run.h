// FlatRun: a run in a simulated world whose gradients no model computes: those of a quadratic,
// or none (docs/simulation.md).
#pragma once
#include <optional>

#include "apps/config/config.h"
#include "apps/launch/job.h"
#include "apps/launch/world_file.h"

namespace skein::apps {

// Trains in this world and leaves an ordinary run directory without a model in it. Returns the exit status.
int run_flat(const Config&, const JobOptions&, const WorldFile&);

// What a run of a ghost would report.
struct FlatFigures {
  double images_per_second = 0, waiting = 0,
         bytes_per_step = 0;          // waiting: share of the worker that waits most
  std::optional<double> hidden = {};  // share of the time of transfers
};
// The same run, without writing files or printing lines. Throws what the run throws.
FlatFigures ghost_figures(const Config&, const JobOptions&, const WorldFile&);

}  // namespace skein::apps
