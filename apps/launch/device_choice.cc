// Assigns GPUs to workers, and applies the process-wide settings of flags.
#include "apps/launch/device_choice.h"

#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "comm/communicator/device_messages.h"
#include "comm/communicator/device_way.h"
#include "engine/device/device_use.h"
#include "engine/device/memory.h"
#include "engine/numerics.h"
#include "engine/recompute.h"
#include "engine/words/find_row.h"

namespace skein::apps {
DeviceChoice deal_device(const Config& c, int local_rank, int gpus, const std::function<void(Device)>& look) {
  if (c.device == "cpu") return {kCpu, ""};
  const bool willing = c.device == "auto";
  const int named = gpu_of(c);
  if (willing && gpus == 0) return {kCpu, ""};
  const Device d{Device::kCuda, named >= 0 ? named : local_rank % std::max(gpus, 1)};
  try {
    look(d);
  } catch (const Error& e) {
    if (willing) return {kCpu, text("computing on the CPU: ", e.what())};
    throw BadOption(text(c.origin("device").place, ": ", e.what()));
  }
  return {d, ""};
}

DeviceChoice choose_device(const Config& c, const Place& place) {
  DeviceChoice chosen = deal_device(c, place.local_rank, cuda_device_count(), require_usable);
  const bool surprising = c.device == "auto" && built_with_cuda() && cuda_device_count() == 0 &&
                          std::filesystem::exists("/proc/driver/nvidia/version");
  if (surprising) chosen.note = "computing on the CPU: " + why_no_cuda();
  return chosen;
}

constexpr const char* kInClear = "; between hosts they are not sealed";

// NCCL encrypts nothing that it sends from host to host.
std::string join_gpus(comm::Communicator& comm, const Config& c, Device d) {
  const bool one_host = comm.transport().address() == "127.0.0.1";
  comm::DeviceOffer mine{.device = d,
                         .gpu = identity_of(d),
                         .groups = {},
                         .trouble = "",
                         .repeatable = numerics().deterministic};
  if (c.seal == "on" && !one_host)
    mine.trouble = "--seal on, and NCCL does not encrypt what it sends between hosts";
  else if (d.is_cuda() && c.collectives != "host")
    try {
      mine.groups = nccl_groups();
    } catch (const Error& e) { mine.trouble = e.what(); }
  const auto wish = one_of<comm::DeviceWish>("--collectives", c.collectives,
                                             {{"auto", comm::DeviceWish::kAuto},
                                              {"host", comm::DeviceWish::kHost},
                                              {"nccl", comm::DeviceWish::kGroup}});
  const std::string nccl = mine.groups.name, line = comm.use_devices(wish, std::move(mine));
  const bool in_clear = !one_host && !nccl.empty() && line.find("go through " + nccl) != std::string::npos;
  return in_clear ? line + kInClear : line;
}

std::string with_sums(const std::string& ways, const std::string& line) {
  return line.ends_with(kInClear) ? ways + line + '\n' : ways;
}

std::string join_messages(comm::Communicator& comm, const Config& c, Device d, int64_t elements) {
  return comm::choose_device_messages(comm, comm::parse_device_messages(c.device_messages), d, elements);
}

void prepare_engine(const Config& c, Device d) {
  const Numerics wanted{.tf32 = c.tf32, .deterministic = c.deterministic, .measure = c.autotune};
  {
    static std::mutex mutex;  // workers that are threads all set the same, and only the first writes
    const std::lock_guard lock(mutex);
    Numerics& n = numerics();
    if (n.tf32 != wanted.tf32 || n.deterministic != wanted.deterministic || n.measure != wanted.measure)
      n = wanted;
    if (recompute_norms() != (c.recompute == "norms")) recompute_norms() = c.recompute == "norms";
  }
  if (d.is_cuda() && c.recompute != "none")
    throw Error(text(c.origin("recompute").place, " ", c.recompute,
                     ": norms are computed again on the CPU only, and this worker computes on ", d));
  if (c.memory_limit > 0) limit_memory(d, int64_t(c.memory_limit * double(1 << 30)));
}

void describe_device(Json& environment, Device d) {
  environment["device"] = text(d);
  if (d.is_cuda()) environment["gpu"] = describe(d);
  environment["numerics"] = describe_numerics();
}

std::string describe_numerics() {
  const Numerics& n = numerics();
  return text(n.tf32 ? "f32 products in tf32" : "f32 is f32", n.deterministic ? ", deterministic" : "",
              n.measure ? ", autotuned" : "");
}

}  // namespace skein::apps
