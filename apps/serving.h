// Serving: a process that only serves (--servers dedicated), in one epoch of the membership.
#pragma once
#include <string>

#include "apps/config/config.h"
#include "apps/launch/job.h"
#include "optim/served.h"

namespace skein::apps {

// Whether others have trained before this epoch.
bool is_later_epoch(const Member&);

// Serves until no worker is left or the membership changes. Returns the exit status, or kNextEpoch if `kept`
// has what goes into the next epoch. Throws as work() does (epoch.h).
int serve(Config, const Member& server, optim::Served& kept);
// Worker 0 tells the server where the run is. With that the server is a member for its launcher.
void tell_server(const Member& me, const std::string& directory);

}  // namespace skein::apps
