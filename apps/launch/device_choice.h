// Chooses the device that a worker computes on, its arithmetic, and how much of its memory to use.
#pragma once
#include <functional>
#include <string>

#include "apps/config/config.h"
#include "apps/launch/job.h"
#include "engine/device/device.h"

namespace skein::apps {

struct DeviceChoice {
  Device device;
  std::string note;  // for the log: why "auto" took no GPU although one might be expected
};

// Resolves --device for worker local_rank of its host. "auto" and "cuda" assign the GPUs in turn, so several
// workers share one if there are fewer GPUs; "cuda:1" is that GPU for all. Throws BadOption, saying what to
// install, if there is no such GPU or it cannot be used; "auto" takes the CPU instead. `look` throws Error if
// the device cannot be used.
DeviceChoice deal_device(const Config&, int local_rank, int gpus, const std::function<void(Device)>& look);
// The same with the GPUs of this host.
DeviceChoice choose_device(const Config&, const Place&);

// Collective. Decides by --collectives whether sums between the workers' GPUs go through NCCL. Returns a line
// for the log, or "".
std::string join_gpus(comm::Communicator&, const Config&, Device);
// The ways between the workers (Place::ways), with the line of join_gpus() where sums leave the
// host in clear.
std::string with_sums(const std::string& ways, const std::string& line);

// Collective. Decides by --device-messages how messages go between the workers' GPUs; most have `elements`
// numbers. Returns a line for the log, or "".
std::string join_messages(comm::Communicator&, const Config&, Device, int64_t elements);

// Applies --tf32, --deterministic and --autotune to the engine's numerics, and
// --memory-limit to its allocator.
void prepare_engine(const Config&, Device);
// Adds "device", "numerics" and, for a GPU, "gpu" (name, driver, libraries).
void describe_device(Json& environment, Device);
// numerics() in words: "f32 is f32", or "tf32, deterministic".
std::string describe_numerics();

}  // namespace skein::apps
