// Placement: if there are enough cores, threads that decode images run on other cores
// than threads that compute.
#pragma once
#include <string>
#include <vector>

#include "apps/launch/job.h"

namespace skein::apps {

struct Placement {
  std::vector<int> compute, data;  // cores; both empty if the system places all threads
};

// The cores of worker `slot` of `slots` that share them: its next `compute` cores, then its next `data`
// cores. None if there are fewer than four cores or fewer than all those threads, and none if the threads
// leave half of the cores free, because a second program like this one would then use the same half.
Placement place_threads(const std::vector<int>& cores, int compute, int data, int slot, int slots);

// The same for this worker, among the workers of its host or, if its launcher reserved cores
// for it, on those.
Placement place_threads(const Place&, int compute, int data);

std::string list_cores(const std::vector<int>& cores);  // "0-3,8"

}  // namespace skein::apps
