// Resharing: M workers go on from the state of N workers. docs/checkpoints.md says what becomes
// of each field.
#pragma once
#include <string>

#include "apps/checkpoint/pool.h"
#include "apps/config/config.h"

namespace skein::apps {

// Gives each of `world` workers, as many as before or not, its part of the resumed run's global batch, which
// does not change: the same images in the same steps. As many as before have the shares that they had, others
// those of --batch-size if it is for so many, or else shares that differ by at most one image. Throws
// BadOption if it has fewer images than there are workers, or if only the same number of workers can continue
// such a run.
void keep_global_batch(Config&, const Manifest&, int world);

// What becomes of state that differs among workers and is not of one sum: models between two
// synchronizations, momentum, running statistics, counters.
enum class Differing : uint8_t {
  kAllEqual,  // all workers begin alike, with the mean; worker 0 takes over the counters of all
  kKeepOwn,   // a worker with state keeps its own; newcomers get the mean, and counters of 0
};

// Gives a new worker its state: the walk loads every field from the pool, on the device where the field is.
// Fields of one sum or of a center (push-sum's X and w, what is pulled) are the same on all workers in either
// case.
// Throws Pool::refuse()'s error if a field is missing, or has another size or type.
void load_pooled(const Pool&, const std::string& algorithm, int rank, Differing, const Walk&);

// Like load_checkpoint(), for a checkpoint that was written by another number of workers than run.world.
// Every worker of the new run reads the files of all old ones and computes the same state from them, except
// for counters, which worker 0 takes over whole.
Manifest load_reshared(const std::string& checkpoint, int rank, const Identity& run, const Walk&);

}  // namespace skein::apps
