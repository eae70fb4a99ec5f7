// Requeue: a SLURM job that has stopped asks to be started again.
#pragma once
#include <string>

namespace skein::apps {

// `scontrol requeue` of the job that this process belongs to. SLURM ends the job's processes soon
// after. Returns what to tell the user: that it was done, or why not (no SLURM job, no scontrol on this
// node, what scontrol says).
std::string requeue_job();

}  // namespace skein::apps
