// Cores: which this process may use, and keeping a thread to some of them.
#pragma once
#include <vector>

namespace skein::data {

std::vector<int> usable_cores();  // of the calling thread, ascending; empty if the system does not tell
// The calling thread, and those it starts later, run on these alone. Nothing if the list is empty or the system
// refuses: the thread is then as right, only where it was.
void run_on(const std::vector<int>& cores);

}  // namespace skein::data
