// Host: what this host says of itself and of its processes.
#pragma once
#include <string>

namespace skein::apps {

std::string host_name();
// Seconds since 1970 by the system's clock.
double wall_clock();
// What /proc/PID/stat says after the process's name, from the letter of its state on; empty if there is none.
std::string process_state(long pid);
// What a file such as /proc/cpuinfo says after `key` and ':' or '=', without quotes; empty if it does not.
std::string value_in(const char* file, const std::string& key);

}  // namespace skein::apps
