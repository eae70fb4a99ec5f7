// Turns a configuration into a job, and divides the host among its workers.
#pragma once
#include "apps/config/config.h"
#include "apps/launch/job.h"

namespace skein::apps {

// How the workers start and meet.
JobOptions job_options(const Config&);
// Place::ways in one line: "rank 1: shared memory; rank 2: tcp, sealed with AES-256-GCM".
std::string one_line(std::string lines);

// The number of this worker's compute threads: --threads, or its share of the host's cores.
int compute_threads(const Config&, const Place&);

}  // namespace skein::apps
