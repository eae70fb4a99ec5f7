// Turns a configuration into a job.
#pragma once
#include "apps/config/config.h"
#include "apps/launch/job.h"

namespace skein::apps {

// How the workers start and meet.
JobOptions job_options(const Config&);
// Place::ways in one line: "rank 1: shared memory; rank 2: tcp, sealed with AES-256-GCM".
std::string one_line(std::string lines);

}  // namespace skein::apps
