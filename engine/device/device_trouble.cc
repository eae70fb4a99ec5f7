// Messages about drivers and devices, and which compiled code runs on which GPU.
#include "engine/device/device_trouble.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace skein {
namespace {

constexpr const char* kOrCpu = ", or use --device cpu";

std::string version_text(int v) { return text(v / 1000, '.', v % 1000 / 10); }

// The first driver release of each generation of CUDA; within one, minor versions run on all of its drivers.
int release_for(int runtime) { return runtime >= 13000 ? 580 : runtime >= 12000 ? 525 : 450; }

struct Architecture {
  int number = 0;
  bool real = true, virtual_ = true, alone = false;  // alone: "90a", for this capability only
};
std::vector<Architecture> architectures(const std::string& list) {
  std::vector<Architecture> all;
  for (size_t at = 0; (at = list.find_first_of("0123456789", at)) != std::string::npos;) {
    Architecture a;
    for (; at < list.size() && list[at] >= '0' && list[at] <= '9'; ++at)
      a.number = 10 * a.number + (list[at] - '0');
    const size_t end = std::min(list.find_first_of(" ;,", at), list.size());
    const std::string kind = list.substr(at, end - at);
    a.alone = kind.find('a') == 0;
    if (kind.find("-real") != std::string::npos) a.virtual_ = false;
    if (kind.find("-virtual") != std::string::npos) a.real = false;
    all.push_back(a);
    at = end;
  }
  return all;
}

}  // namespace

std::string trouble_with(const DriverLook& d) {
  const std::string driver = text("an NVIDIA driver of release ", release_for(d.runtime), " or later");
  switch (d.state) {
    case DriverLook::kWorks:
      return "";
    case DriverLook::kMissing:
      return text("there is no NVIDIA driver here (libcuda.so.1 is not to be found). Install ", driver,
                  "; a container gets the host's by --gpus all", kOrCpu);
    case DriverLook::kTooOld:
      return text("the NVIDIA driver is too old: it can run CUDA ", version_text(d.driver),
                  ", and this program was built with CUDA ", version_text(d.runtime), ". Install ", driver,
                  kOrCpu);
    case DriverLook::kNoDevice: {
      const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
      return text("the NVIDIA driver sees no GPU",
                  visible ? text(" (CUDA_VISIBLE_DEVICES is '", visible, "')") : std::string(),
                  "; does nvidia-smi show one? Else there is none, or a container lacks --gpus all", kOrCpu);
    }
    case DriverLook::kOther:
      break;
  }
  return text("the NVIDIA driver does not start: ", d.words,
              "; does nvidia-smi work? After an update of the driver the machine has to be restarted",
              kOrCpu);
}

bool can_run(const DeviceLook& d, const std::string& built_for) {
  for (const Architecture& a : architectures(built_for)) {
    const int major = a.number / 10, minor = a.number % 10;
    if (a.alone ? d.major == major && d.minor == minor
                : (a.real && d.major == major && d.minor >= minor) ||
                      (a.virtual_ && 10 * d.major + d.minor >= a.number))
      return true;
  }
  return false;
}

std::string trouble_with(const DeviceLook& d, const std::string& built_for) {
  if (can_run(d, built_for)) return "";
  const int own = 10 * d.major + d.minor;
  std::string all;
  for (const Architecture& a : architectures(built_for))
    all += text(all.empty() ? "" : ", ", a.number / 10, '.', a.number % 10);
  return text(d.name, " has compute capability ", d.major, '.', d.minor, ", and this program holds code for ",
              all, ". ",
              own < 75 ? std::string("CUDA 13 compiles for 7.5 and later only: use another GPU")
                       : text("Configure with -DSKEIN_CUDA_ARCHITECTURES=", own, " and rebuild"),
              kOrCpu);
}

std::string bytes_in_words(int64_t bytes) {
  char said[32];
  if (bytes >= 1000000000)
    std::snprintf(said, sizeof said, "%.1f GB", double(bytes) / 1e9);
  else if (bytes >= 1000000)
    std::snprintf(said, sizeof said, "%.0f MB", double(bytes) / 1e6);
  else if (bytes >= 10000)
    std::snprintf(said, sizeof said, "%.0f kB", double(bytes) / 1e3);
  else
    std::snprintf(said, sizeof said, "%lld bytes", static_cast<long long>(bytes));
  return said;
}

}  // namespace skein
