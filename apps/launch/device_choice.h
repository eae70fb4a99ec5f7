// Which device a worker computes on, by which arithmetic, and with how much of its memory.
#pragma once
#include <functional>
#include <string>

#include "apps/config/config.h"
#include "apps/launch/job.h"
#include "engine/device/device.h"

namespace skein::apps {

struct DeviceChoice {
  Device device;
  std::string note;  // for the log: why "auto" took no GPU where one might be expected
};

// --device, for the worker that is local_rank-th of its host. "auto" and "cuda" deal the GPUs round, so
// several workers share one where there are fewer GPUs; "cuda:1" is that one for all. BadOption where there
// is no such GPU or it cannot be used, saying what to install; "auto" then takes the CPU. `look` throws Error
// if the device cannot be used.
DeviceChoice deal_device(const Config&, int local_rank, int gpus, const std::function<void(Device)>& look);
// The same for the GPUs there are.
DeviceChoice choose_device(const Config&, const Place&);

// Collective: whether sums between the workers' GPUs go through NCCL, by --collectives. A line for
// the log, or empty.
std::string join_gpus(comm::Communicator&, const Config&, Device);

// Collective: how messages go between the workers' GPUs, by --device-messages; as a rule of `elements`
// numbers. A line for the log, or empty.
std::string join_messages(comm::Communicator&, const Config&, Device, int64_t elements);

// --tf32, --deterministic and --autotune into the engine's numerics, --memory-limit into its allocator.
void prepare_engine(const Config&, Device);
// "device", "gpu" (name, driver, libraries; of a GPU) and "numerics".
void describe_device(Json& environment, Device);
// What numerics() is: "f32 is f32", or "tf32, deterministic".
std::string describe_numerics();

}  // namespace skein::apps
