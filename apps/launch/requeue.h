// Requeue: a SLURM job that has stopped asks SLURM to start it again.
#pragma once

namespace skein::apps {

// Runs `scontrol requeue` for the job that this process belongs to. SLURM may end the job's processes before
// that returns, so stdout says it first, and afterwards only why it failed (no SLURM job, no scontrol on this
// node, scontrol's error).
void requeue_job();

}  // namespace skein::apps
