// The layers of a configuration: defaults, the run or job that it starts from, recipe, file, command line.
#pragma once
#include "apps/command_line/command.h"
#include "apps/command_line/given_flags.h"

namespace skein::apps {

// Reads them into command.config, each over the one before, and notes in `command` which run or job it
// starts from. Returns the configuration of that run or job; the defaults if there is none. Throws
// BadOption or BadFile.
Config read_layers(Command&, const GivenFlags&, const Flags&, const AskJob&);

}  // namespace skein::apps
