// --resume: the run that is continued, what it hands over, and what has changed since.
#pragma once
#include "apps/command_line/command.h"
#include "apps/command_line/given_flags.h"

namespace skein::apps {

// Finds the run that --resume means, and starts from the configuration with which it was last trained, except
// for flags that name a place or a purpose. Throws BadOption or BadFile.
void start_from_run(Command&, const GivenFlags&, const Flags&);

// Call it when all flags are read. It keeps the run's global batch if the number of workers has changed, and
// notes the differences from `before`, the run's configuration. Throws BadOption or BadFile if the run
// cannot continue so.
void continue_run(Command&, const Config& before, const Flags&);

}  // namespace skein::apps
