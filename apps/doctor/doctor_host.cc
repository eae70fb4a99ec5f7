// Checks processor, memory, shared memory and the limits of the shell.
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "apps/base/host.h"
#include "apps/doctor/doctor.h"
#include "comm/join/interfaces.h"
#include "comm/join/sockets.h"
#include "comm/transports/arena.h"
#include "engine/device/processor.h"
#include "engine/words/host_memory.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

// UCX takes 4.3 MB of /dev/shm per process at its start, for receive buffers, and as much again under load.
constexpr double kSharedByUcx = 8 * kMega;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// The tightest limit of this process's control groups and their parents; nothing if there is none.
std::optional<std::string> group_limit(const std::string& v2_file, const std::string& controller,
                                       const std::string& v1_file) {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t a = line.find(':'), b = line.find(':', a + 1);
    if (b == std::string::npos) continue;
    const std::string which = line.substr(a + 1, b - a - 1);
    fs::path at = line.substr(b + 1);
    const bool v2 = which.empty();
    if (!v2 && which.find(controller) == std::string::npos) continue;
    for (;; at = at.parent_path()) {
      const fs::path root = v2 ? "/sys/fs/cgroup" : fs::path("/sys/fs/cgroup") / which;
      const std::string said = first_line(root / at.relative_path() / (v2 ? v2_file : v1_file));
      if (!said.empty() && !said.starts_with("max") && !said.starts_with("-1")) return said;
      if (at == at.root_path() || at.empty()) break;
    }
  }
  return {};
}

// How many cores' worth of time the control group allows; 0 means no limit.
double cores_allowed() {
  const auto said = group_limit("cpu.max", "cpu", "cpu.cfs_quota_us");
  if (!said) return 0;
  std::istringstream s(*said);
  double quota = 0, period = 1e5;
  s >> quota >> period;
  return quota / period;
}

std::string instructions() {
  const Isa chosen = chosen_isa(), widest = this_processor().widest;
  if (chosen == widest) return name_of(chosen);
  return fmt::format("{} {}, of {}", name_of(chosen),
                     isa_is_forced() ? "by SKEIN_CPU" : "because bf16 pairs are slow", name_of(widest));
}

}  // namespace

void check_processor(const Patient& p, Findings& out) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const long all = sysconf(_SC_NPROCESSORS_ONLN);
  const double allowed = cores_allowed();
  std::string what = fmt::format("{} of {} cores ({}; {})", cores, all,
                                 value_in("/proc/cpuinfo", "model name"), instructions());
  if (allowed > 0 && allowed < cores)
    return out.push_back(warning("processor",
                                 what + fmt::format(", but its control group grants {:.3g}", allowed),
                                 fmt::format("--threads {} for each of {} workers, or ask for more cores",
                                             std::max(1, int(allowed) / p.here), p.here)));
  if (p.here > cores)
    return out.push_back(warning("processor", what + fmt::format(" for {} workers", p.here),
                                 fmt::format("--workers {}: more only take turns", cores)));
  out.push_back(in_order("processor", what));
}

void check_memory(const Patient& p, Findings& out) {
  double kilobytes = 0;
  std::istringstream(value_in("/proc/meminfo", "MemAvailable")) >> kilobytes;
  double free = kilobytes * 1024;
  std::string limit;
  if (const auto said = group_limit("memory.max", "memory", "memory.limit_in_bytes")) {
    const double most = std::atof(said->c_str());
    if (most > 0 && most < free) free = most, limit = " (by its control group)";
  }
  const std::string what = fmt::format("{:.1f} GB available{}", free / kGiga, limit);
  out.push_back(free < 0.5 * kGiga * p.here
                    ? warning("memory", what + fmt::format(" for {} workers", p.here),
                              "fewer --workers, a smaller --batch-size, or ask for more memory")
                    : in_order("memory", what));

  // Our own transport maps one sparse file of anonymous memory per worker.
  const size_t bytes = size_t(comm::arena_bytes(p.here, host_memory())) * size_t(p.here);
  const comm::Fd file(memfd_create("doctor", MFD_CLOEXEC));
  void* map = MAP_FAILED;
  if (file && ftruncate(file.get(), off_t(bytes)) == 0)
    map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (map == MAP_FAILED)
    out.push_back(problem("shared memory",
                          fmt::format("{:.0f} GB of address space cannot be mapped: {}",
                                      double(bytes) / kGiga, std::strerror(errno)),
                          "ulimit -v unlimited, or --transport tcp"));
  else
    munmap(map, bytes);

  struct statvfs s {};
  if (statvfs("/dev/shm", &s) != 0)
    return out.push_back(problem("shared memory",
                                 fmt::format("there is no /dev/shm: {}", std::strerror(errno)),
                                 "mount -t tmpfs tmpfs /dev/shm"));
  const double size = double(s.f_blocks) * double(s.f_frsize), left = double(s.f_bavail) * double(s.f_frsize);
  const double need = kSharedByUcx * std::max(2, p.here);
  const std::string shm = fmt::format("/dev/shm has {:.0f} of {:.0f} MB free", left / kMega, size / kMega);
  if (left < need && p.config.transport != "shared" && p.config.transport != "local")
    out.push_back(problem(
        "shared memory", fmt::format("{}, UCX needs {:.0f}", shm, need / kMega),
        size < need ? "mount -o remount,size=1g /dev/shm as root, docker run --shm-size 1g, or, if all "
                      "workers are on this host, --transport shared, which does not use it"
                    : "remove what other jobs have left in /dev/shm"));
  else if (map != MAP_FAILED)
    out.push_back(in_order("shared memory", shm + "; memory files of our own can be mapped"));
}

void check_limits(const Patient& p, Findings& out) {
  rlimit files{}, locked{};
  getrlimit(RLIMIT_NOFILE, &files), getrlimit(RLIMIT_MEMLOCK, &locked);
  const rlim_t need = rlim_t(128 + 8 * p.world);  // sockets of UCX and of the liveness checks of each peer
  const auto words = [](rlim_t v) {
    return v == RLIM_INFINITY ? std::string("unlimited") : std::to_string(v);
  };
  if (files.rlim_cur < need)
    out.push_back(problem(
        "open files", fmt::format("{} are allowed, {} workers need {}", words(files.rlim_cur), p.world, need),
        files.rlim_max >= need ? fmt::format("ulimit -n {}", need)
                               : "raise nofile in /etc/security/limits.conf"));
  else
    out.push_back(in_order("open files", words(files.rlim_cur) + " are allowed"));
  const std::string lock = locked.rlim_cur == RLIM_INFINITY
                               ? "unlimited"
                               : fmt::format("{:.0f} MB", double(locked.rlim_cur) / kMega);
  const bool rdma = !comm::rdma_devices().empty();
  if (rdma && locked.rlim_cur != RLIM_INFINITY)
    out.push_back(warning("locked memory", lock + ", and RDMA devices lock what they send",
                          "ulimit -l unlimited (memlock in /etc/security/limits.conf)"));
  else
    out.push_back(in_order("locked memory", lock + (rdma ? "" : "; there is no RDMA device to need more")));
}

}  // namespace skein::apps
