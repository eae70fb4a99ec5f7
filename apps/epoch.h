// One epoch of the membership, as one worker's process lives it: a whole run, unless workers come or go.
#pragma once
#include <optional>

#include "apps/checkpoint/run_directory.h"
#include "apps/command_line/command.h"
#include "apps/launch/job.h"
#include "apps/survival/legacy.h"
#include "optim/served.h"

namespace skein::apps {

// What a process keeps when the membership changes around it.
struct Kept {
  std::optional<RunDirectory> home;
  Legacy legacy;
  optim::Served served;  // of a server
};

// Trains as this worker until the run or the epoch ends, or serves as the server until no worker is left.
// Only rank 0 prints. Returns the exit status, or kNextEpoch with the state for the next epoch in `kept`.
// Throws BadOption, BadFile, or comm::Lost. Collective.
int work(const Command&, const Member&, Kept&);

}  // namespace skein::apps
