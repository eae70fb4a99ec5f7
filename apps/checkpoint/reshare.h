// Resharing: M workers load a checkpoint of N workers. docs/checkpoints.md says what happens to each field.
#pragma once
#include <string>

#include "apps/checkpoint/checkpoint.h"
#include "apps/config/config.h"

namespace skein::apps {

// Gives each of `world` workers its part of the resumed run's global batch, which does not change: the
// same images in the same steps. Throws BadOption if it cannot be divided among so many workers (naming
// numbers that work), if a given --batch-size contradicts it, or if only the same number of workers can
// continue such a run.
void keep_global_batch(Config&, const Manifest&, int world);

// Like load_checkpoint(), for a checkpoint that was written by another number of workers than run.world.
// Every worker of the new run reads the files of all old ones and computes the same state from them, except
// for counters, which worker 0 takes over whole.
Manifest load_reshared(const std::string& checkpoint, int rank, const Identity& run, const Walk&);

}  // namespace skein::apps
