// How messages of tensors on GPUs travel: by UCX from one GPU's memory to the other's, or by way of the host.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::comm {

enum class DeviceMessages : uint8_t { kAuto, kOn, kOff };
DeviceMessages parse_device_messages(const std::string&);  // "auto", "on", "off"; BadOption otherwise

// How long a tensor on one worker's device takes to its neighbor and back, in seconds. Zeros if it
// has no neighbor.
struct RoundTrips {
  double by_host = 0, direct = 0;
};

// The decision, which is the same for all workers.
struct MessageVerdict {
  bool direct = false;
  std::string why;      // for the log; empty: no worker has a GPU
  std::string refused;  // why the wish cannot be granted; empty: it can
};
// Decides before anything is measured. `gpus`: which worker has one; `trouble`: DeviceMemory::trouble().
MessageVerdict decide(DeviceMessages, const std::vector<bool>& gpus, const std::string& trouble);
// Decides on the round trip of the slowest pair, for which all others wait. `bytes`: the size of the tensor.
MessageVerdict decide(const std::vector<RoundTrips>&, int64_t bytes);

// Collective, to be called once, before any message: from then on what workers push from the device `mine`
// travels as was decided. `elements`: how many f32 a message usually has, for measuring. Returns a line for
// the log, empty if no worker has a GPU. Throws BadOption, on all workers, for a wish that cannot be granted.
std::string choose_device_messages(Communicator&, DeviceMessages, Device mine, int64_t elements);

}  // namespace skein::comm
