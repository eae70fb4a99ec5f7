// A worker's share of its host: device, threads, and the cores they run on. If there are enough, threads that
// decode images run on other cores than threads that compute.
#pragma once
#include <string>
#include <vector>

#include "apps/config/config.h"
#include "apps/launch/job.h"
#include "engine/device/device.h"

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

// The number of this worker's compute threads: --threads, or its share of the host's cores.
int compute_threads(const Config&, const Place&);

struct Share {
  Device device;
  std::string device_note;  // for the log; may be empty
  int threads = 1, data_threads = 1;
  std::vector<int> compute_cores, data_cores;  // where the threads run; empty: anywhere
};
// Chooses the device, gives the calling thread its team of compute threads, and applies the flags about
// arithmetic and memory to the engine. Throws BadOption.
Share take_share(const Config&, const Place&);

std::string list_cores(const std::vector<int>& cores);  // "0-3,8"

}  // namespace skein::apps
