// Collectives among GPUs: the interface through which a communicator uses NCCL, and tests a substitute.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "engine/device/device.h"
#include "engine/seam.h"

namespace skein {

class Tensor;

// A group whose members have a device each. All members call the same functions in the same order. A call
// returns when its work is queued on the stream, which belongs to that device, so that an event recorded
// there comes after it. A call that fails ends the group and throws Error. Only one thread may call at a
// time, except that any thread may call abort().
class DeviceGroup {
 public:
  // Lets queued work finish together with the other members; after an error, or while an exception
  // unwinds, it aborts instead.
  virtual ~DeviceGroup() = default;
  virtual Device device() const = 0;
  virtual void all_reduce(const Tensor& x, Stream&) = 0;           // x <- the sum of all x
  virtual void broadcast(const Tensor& x, int root, Stream&) = 0;  // x <- the root's
  virtual void check_health() const = 0;                           // throws Error if a member was lost
  virtual void abort() noexcept = 0;  // ends work that waits for a lost member; then all calls throw Error
};

// A stream of high priority, for collectives: a device runs the kernels that wait in it before
// those in other streams.
Stream urgent_stream(Device);

// Forms groups. An id names a group about to be formed: one member makes it and sends it to the others.
struct DeviceGroups {
  std::string name;  // for the log: "NCCL 2.28.9"
  std::function<std::string()> new_id;
  // Waits up to `deadline` seconds until all `size` members have called it. Throws Error if they have not.
  std::function<std::unique_ptr<DeviceGroup>(const std::string& id, int rank, int size, Device,
                                             double deadline)>
      form;
};

// The groups of NCCL. Throws Error that says what to install if there is no NCCL.
using cuda::nccl_groups;

// Tells this GPU from all others; empty for the CPU.
inline std::string identity_of(Device d) { return d.is_cuda() ? cuda::identity(d.index) : ""; }

}  // namespace skein
