// Collectives among GPUs: what a communicator asks of NCCL, without knowing it; tests put
// something in its place.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "engine/device/device.h"
#include "engine/seam.h"

namespace skein {

class Tensor;

// Members of a group, each with a device of its own. All members call the same functions in the same
// order; calls return when their work is on the stream, which is of that device, so that an event
// recorded there comes behind it. One that fails ends the group and throws Error. One thread at a time,
// but for abort(): any thread.
class DeviceGroup {
 public:
  // Lets what is queued come to its end together with the other members, but while an exception unwinds and
  // after errors: then as abort() does.
  virtual ~DeviceGroup() = default;
  virtual Device device() const = 0;
  virtual void all_reduce(const Tensor& x, Stream&) = 0;           // x <- the sum of all x
  virtual void broadcast(const Tensor& x, int root, Stream&) = 0;  // x <- the root's
  virtual void check_health() const = 0;                           // throws Error if a member was lost
  virtual void abort() noexcept = 0;  // ends work that waits for a lost member; then all calls throw Error
};

// A stream for collectives: of kernels that wait in several streams a device takes those
// of urgent ones first.
Stream urgent_stream(Device);

// Where groups come from. An id names a group about to be formed: one member makes it and brings
// it to the others.
struct DeviceGroups {
  std::string name;  // for the log: "NCCL 2.28.9"
  std::function<std::string()> new_id;
  // Waits until all `size` members have come, for at most `deadline` seconds. Throws Error.
  std::function<std::unique_ptr<DeviceGroup>(const std::string& id, int rank, int size, Device,
                                             double deadline)>
      form;
};

// NCCL's. Throws Error that says what to install.
using cuda::nccl_groups;

// Tells this GPU from all others; empty for the CPU.
inline std::string identity_of(Device d) { return d.is_cuda() ? cuda::identity(d.index) : ""; }

}  // namespace skein
