// From a configuration to a job, and how much of the host belongs to each of its workers.
#pragma once
#include "apps/config/config.h"
#include "apps/launch/job.h"

namespace skein::apps {

// How the workers are to be started and to meet.
JobOptions job_options(const Config&);

// Compute threads of this worker: --threads, or its share of the host's cores.
int compute_threads(const Config&, const Place&);

}  // namespace skein::apps
