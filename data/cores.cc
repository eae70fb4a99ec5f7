// Affinity masks of Linux.
#include "data/cores.h"

#include <sched.h>

namespace skein::data {

std::vector<int> usable_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(size_t(c), &set)) cores.push_back(c);
  return cores;
}

void run_on(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int c : cores)
    if (c >= 0 && c < CPU_SETSIZE) CPU_SET(size_t(c), &set);
  if (CPU_COUNT(&set) > 0) sched_setaffinity(0, sizeof set, &set);
}

}  // namespace skein::data
