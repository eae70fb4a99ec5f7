// Requeue: a SLURM job that has stopped asks SLURM to start it again.
#pragma once
#include <string>

namespace skein::apps {

// Runs `scontrol requeue` for the job that this process belongs to. SLURM ends the job's processes soon
// after. Returns a message for the user: that it was done, or why not (no SLURM job, no scontrol on
// this node, scontrol's error).
std::string requeue_job();

}  // namespace skein::apps
