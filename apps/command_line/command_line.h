// The command line of train_imagenet.
#pragma once
#include "apps/command_line/command.h"

namespace skein::apps {

// The command line over the --config file over the --recipe over the configuration of a resumed run over the
// defaults. Throws BadOption naming the flag (or file, line and key), what is allowed and the nearest valid
// name, or BadFile. With --join the running job's configuration takes the place of a
// resumed run's, and BadOption names the flags that contradict it. Without `ask` the job
// is not asked.
Command parse_command_line(int argc, const char* const* argv, const Flags& = flags(), const AskJob& ask = {});

}  // namespace skein::apps
