// Placement: threads that decode images on other cores than threads that compute, where there are enough.
#pragma once
#include <string>
#include <vector>

#include "apps/launch/job.h"

namespace skein::apps {

struct Placement {
  std::vector<int> compute, data;  // cores; both empty: the system places all threads
};

// What worker `slot` of `slots` that share the cores gets: its next `compute` cores, then its next
// `data` cores. Nothing where there are fewer than four cores or fewer than all those threads, and
// nothing where the threads leave half of the cores free: another program like this one would then be
// put on the very same half.
Placement place_threads(const std::vector<int>& cores, int compute, int data, int slot, int slots);

// The same for this worker, among those of its host or, where its launcher gave it cores of
// its own, on those.
Placement place_threads(const Place&, int compute, int data);

std::string list_cores(const std::vector<int>& cores);  // "0-3,8"

}  // namespace skein::apps
