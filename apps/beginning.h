// How a worker's training begins: from which checkpoint, and in which directory, that its workers then hold.
#pragma once
#include <string>

#include "apps/checkpoint/run_directory.h"
#include "apps/command_line.h"
#include "comm/communicator/communicator.h"

namespace skein::apps {

// The checkpoint to continue from; empty: training starts at step 0. A run that continues in its own
// directory holds that from here on, because who trained in it until now may just have written a newer
// checkpoint, or removed this one. With --resume auto, rank 0 waits for such a process to end, for half of
// --deadline and 30 seconds at most. Collective. Throws BadFile.
std::string checkpoint_to_start_from(const Command&, comm::Communicator&, RunDirectory&);

// The directory in which the run records itself, made and held. Collective. Throws BadOption if there is
// another run in it, BadFile.
std::string directory_to_train_in(const Command&, comm::Communicator&, RunDirectory&);

}  // namespace skein::apps
