// Everything a program outside this tree needs: docs/embedding.md.
#pragma once
#include "apps/embed/learner.h"
#include "apps/embed/vector_worker.h"
#include "comm/communicator/communicator.h"
#include "comm/communicator/run_workers.h"
#include "data/loader.h"
#include "data/source.h"
#include "engine/ops.h"
#include "engine/random.h"
#include "engine/tape.h"
#include "engine/version.h"
#include "nn/layers.h"
#include "nn/models.h"
#include "optim/schedule.h"
#include "optim/strategy.h"

namespace skein {

using comm::run_workers;

}  // namespace skein
