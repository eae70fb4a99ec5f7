// Role: which member of a job only serves (--servers dedicated).
#pragma once
#include <string>

#include "comm/membership/view.h"

namespace skein::apps {

// In the environment of a process that takes the place of a server.
inline constexpr const char* kServesVariable = "SKEIN_SERVES";

// A word of the card of a process that was started to serve, which is so as long as it lives.
inline constexpr const char* kServesMark = " +serves";
// The rank of the first member that serves, as all members know; -1: none does, and a worker serves
// beside its training.
int server_in(const comm::View&);
inline constexpr const char* kServerName = "the server";
// "worker 2", or kServerName: what the rank of a view is called.
std::string name_in(const comm::View&, int rank);

}  // namespace skein::apps
