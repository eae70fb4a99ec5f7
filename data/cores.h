// Which CPU cores this process may use, and how a thread is bound to some of them.
#pragma once
#include <vector>

namespace skein::data {

std::vector<int> usable_cores();  // of the calling thread, ascending; empty if the system does not say
// Binds the calling thread, and threads it starts later, to these cores. Does nothing if the list is empty or
// the system refuses, since binding only affects speed.
void run_on(const std::vector<int>& cores);

}  // namespace skein::data
