// How messages of tensors on GPUs go: by UCX from one GPU's memory to the other's, or by way of the host.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::comm {

enum class DeviceMessages : uint8_t { kAuto, kOn, kOff };
DeviceMessages parse_device_messages(const std::string&);  // "auto", "on", "off"; BadOption otherwise

// One worker's round trip with its neighbor, seconds: of a tensor on its device that comes back to it. Zeros if
// it has no neighbor.
struct RoundTrips {
  double by_host = 0, direct = 0;
};

// What it comes to; the same for all workers.
struct MessageVerdict {
  bool direct = false;
  std::string why;      // for the log; empty: nobody has a GPU
  std::string refused;  // a wish that cannot be; then an error
};
// Before anything is measured. `gpus`: which worker has one; `trouble`: DeviceMemory::trouble().
MessageVerdict decide(DeviceMessages, const std::vector<bool>& gpus, const std::string& trouble);
// The slowest pair's round trip decides, for it is what the others wait for. `bytes`: of the tensor.
MessageVerdict decide(const std::vector<RoundTrips>&, int64_t bytes);

// Collective, once, before messages: from then on what workers push from `mine` goes to all as was decided.
// `elements`: how many f32 a message usually has, for measuring. Returns a line for the log, empty if nobody
// has a GPU. Throws BadOption, on all, for a wish that cannot be.
std::string choose_device_messages(Communicator&, DeviceMessages, Device mine, int64_t elements);

}  // namespace skein::comm
