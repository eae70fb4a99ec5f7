// Checks the driver and CUDA libraries, opening them by name as a run would.
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "apps/doctor/doctor.h"
#include "engine/device/device_use.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

template <class F>
F function(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

struct Driver {
  std::string trouble;  // why there is no GPU to compute on
  int version = 0;      // 13000 if CUDA 13.0 is the newest it can run
  std::string devices;  // "NVIDIA H200 (139 GB)"
};

Driver look_at_driver() {
  Driver d;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return {.trouble = "the driver's libcuda.so.1 cannot be opened", .devices = ""};
  const auto init = function<int (*)(unsigned)>(library, "cuInit");
  const auto version = function<int (*)(int*)>(library, "cuDriverGetVersion");
  const auto count = function<int (*)(int*)>(library, "cuDeviceGetCount");
  const auto name = function<int (*)(char*, int, int)>(library, "cuDeviceGetName");
  const auto memory = function<int (*)(size_t*, int)>(library, "cuDeviceTotalMem_v2");
  if (!init || !version || !count || !name || !memory)
    return {.trouble = "libcuda.so.1 is not a driver", .devices = ""};
  if (const int code = init(0); code != 0)
    return {.trouble = fmt::format("the driver does not start (CUDA error {})", code), .devices = ""};
  int n = 0;
  version(&d.version);
  if (count(&n) != 0 || n == 0) return {.trouble = "the driver sees no device", .devices = ""};
  for (int i = 0; i < n; ++i) {
    char what[256] = "";
    size_t bytes = 0;
    name(what, int(sizeof what), i), memory(&bytes, i);
    d.devices += fmt::format("{}{} ({:.0f} GB)", i ? ", " : "", what, double(bytes) / kGiga);
  }
  return d;
}

// The libraries that a CUDA build opens on first use.
constexpr struct {
  const char *name, *file, *package;
} kLibraries[] = {{"cuDNN", "libcudnn.so.9", "cudnn9-cuda-13"},
                  {"cuBLASLt", "libcublasLt.so.13", "libcublas-13-0"},
                  {"NCCL", "libnccl.so.2", "libnccl2"}};

}  // namespace

void check_gpu(const Patient& p, Findings& out) {
  const bool wanted = p.config.device.starts_with("cuda");
  const bool present = fs::exists("/proc/driver/nvidia/version") || fs::exists("/dev/nvidiactl");
  const Driver d = look_at_driver();
  if (!built_with_cuda()) {
    if (wanted)
      out.push_back(problem("GPU", "--device cuda, but this is a CPU-only build",
                            "build where a CUDA toolkit is (cmake --preset cuda), or --device cpu"));
    else if (d.trouble.empty())
      out.push_back(warning("GPU", d.devices + " is not used: this is a CPU-only build",
                            "cmake --preset cuda makes one that uses it"));
    else
      out.push_back(in_order("GPU", "none is needed: this is a CPU-only build"));
    return;
  }
  if (!d.trouble.empty()) {
    if (wanted || present)
      out.push_back(problem("GPU", d.trouble,
                            present ? "is the driver's library in the container (--gpus all), and as new as "
                                      "its kernel module? nvidia-smi says"
                                    : "install the NVIDIA driver, or --device cpu"));
    else
      out.push_back(in_order("GPU", "none here; computing on the CPU"));
    return;
  }
  const std::string what =
      fmt::format("{}, driver for CUDA {}.{}", d.devices, d.version / 1000, d.version % 1000 / 10);
  out.push_back(d.version < 13000 ? problem("GPU", what + "; CUDA 13.0 is needed",
                                            "a driver of release 580 or later, or --device cpu")
                                  : in_order("GPU", what));
  for (const auto& library : kLibraries) {
    const std::string besides = fmt::format("/usr/local/cuda/lib64/{}", library.file);
    if (dlopen(library.file, RTLD_NOW | RTLD_LOCAL) || dlopen(besides.c_str(), RTLD_NOW | RTLD_LOCAL))
      out.push_back(in_order("GPU", fmt::format("{} can be opened", library.name)));
    else
      out.push_back(problem(
          "GPU", fmt::format("{} cannot be opened: {}", library.name, dlerror()),
          fmt::format(
              "install {}, or name its folder in LD_LIBRARY_PATH (a PyTorch has it under nvidia/*/lib)",
              library.package)));
  }
}

}  // namespace skein::apps
