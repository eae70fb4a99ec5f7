// Resharing: a checkpoint of N workers loaded by M. What becomes of each field is in docs/checkpoints.md.
#pragma once
#include <string>

#include "apps/checkpoint/checkpoint.h"
#include "apps/config/config.h"

namespace skein::apps {

// Gives each of `world` workers its part of the global batch of the run to be resumed, which stays what it
// was: the same images in the same steps. BadOption: it cannot be divided among so many (with the numbers
// that can), a --batch-size of one's own contradicts it, or the run is of a kind that only its own number of
// workers can continue.
void keep_global_batch(Config&, const Manifest&, int world);

// As load_checkpoint, of a checkpoint that was written by another number of workers than run.world. Every
// worker of the new run reads the files of all the old ones and makes the same of them, but for what counts
// something up, which worker 0 takes over whole.
Manifest load_reshared(const std::string& checkpoint, int rank, const Identity& run, const Walk&);

}  // namespace skein::apps
