// How a training begins: from which checkpoint, and in which directory, which its workers then lock.
#pragma once
#include <string>

#include "apps/checkpoint/run_directory.h"
#include "apps/command_line/command.h"
#include "comm/communicator/communicator.h"

namespace skein::apps {

// The checkpoint to continue from; empty if training starts at step 0. A run that continues in its own
// directory locks it from here on, because a process that still trains in it may just have written a newer
// checkpoint, or removed this one. With --resume auto, rank 0 waits for such a process to end, for at most
// half of --deadline and 30 seconds. Collective. Throws BadFile.
std::string checkpoint_to_start_from(const Command&, comm::Communicator&, RunDirectory&);

// Makes and locks the directory in which the run records itself, and returns it. Collective. Throws BadOption
// if there is another run in it, and BadFile.
std::string directory_to_train_in(const Command&, comm::Communicator&, RunDirectory&);

}  // namespace skein::apps
