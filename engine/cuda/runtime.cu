// The CUDA runtime behind engine/cuda/runtime.h; every status becomes an exception here.
#include "engine/cuda/runtime.h"

#include <atomic>

#include "engine/cuda/status.h"
#include "engine/loops/launch.h"

namespace skein {

void check_launch(const char* what) { cuda::check(cudaGetLastError(), what); }

namespace cuda {

int device_count() noexcept {
  int n = 0;
  return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}
DriverLook look_at_driver() noexcept {
  int n = 0, driver = 0, runtime = 0;
  const cudaError_t status = cudaGetDeviceCount(&n);
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  DriverLook look{.state = DriverLook::kWorks, .driver = driver, .runtime = runtime, .words = ""};
  if (status == cudaErrorInsufficientDriver)
    look.state = driver == 0 ? DriverLook::kMissing : DriverLook::kTooOld;
  else if (status == cudaErrorNoDevice || (status == cudaSuccess && n == 0))
    look.state = DriverLook::kNoDevice;
  else if (status == cudaErrorStubLibrary)  // the linker's stub library was loaded instead of the driver
    look.state = DriverLook::kMissing;
  else if (status != cudaSuccess)
    look.state = DriverLook::kOther, look.words = cudaGetErrorString(status);
  return look;
}
namespace {
cudaDeviceProp properties(int index) {
  cudaDeviceProp p{};
  check(cudaGetDeviceProperties(&p, index), "cudaGetDeviceProperties");
  return p;
}
}  // namespace
void require_usable(int index) {
  const cudaDeviceProp p = properties(index);
  const std::string why = trouble_with(DeviceLook{p.name, p.major, p.minor}, SKEIN_CUDA_ARCHITECTURES);
  if (!why.empty()) throw Error(why);
  libraries();  // throws and says what to install if one is missing
}
std::string describe(int index) {
  const cudaDeviceProp p = properties(index);
  const DriverLook look = look_at_driver();
  return text(p.name, ", compute capability ", p.major, '.', p.minor, ", driver for CUDA ",
              look.driver / 1000, '.', look.driver % 1000 / 10, ", ", libraries());
}
std::string identity(int index) {
  const cudaDeviceProp p = properties(index);
  return {p.uuid.bytes, sizeof p.uuid.bytes};
}
int64_t free_memory(int index) noexcept {
  size_t free = 0, total = 0;
  return cudaSetDevice(index) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess ? int64_t(free)
                                                                                             : 0;
}
int64_t cache_bytes(int index) { return properties(index).l2CacheSize; }
namespace {
// Lets a capturing thread make calls that are forbidden during a capture; these queue no work,
// so they are safe.
class NotCaptured {
 public:
  NotCaptured() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~NotCaptured() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  NotCaptured(const NotCaptured&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};
std::atomic<int> home{-1};  // the first device this process worked on
thread_local bool settled = false;
// A thread starts with device 0, whichever device its process uses, and its first call that needs a
// device, even for pinned memory, would make a context there: hundreds of MB of a GPU that may
// belong to another worker.
void settle() {
  const int index = home;
  if (!settled && index >= 0 && cudaSetDevice(index) == cudaSuccess) settled = true;
}
}  // namespace
void make_current(int index) {
  check(cudaSetDevice(index), "cudaSetDevice");
  settled = true;
  int none = -1;
  home.compare_exchange_strong(none, index);
}
void* allocate(int index, int64_t bytes) {
  make_current(index);
  const NotCaptured call;
  void* p = nullptr;
  const cudaError_t status = cudaMalloc(&p, size_t(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(status, "cudaMalloc");
  return p;
}
void release(int, void* p) noexcept {
  settle();
  const NotCaptured call;
  cudaFree(p);
}
void* allocate_pinned(int64_t bytes) {
  settle();
  const NotCaptured call;
  void* p = nullptr;
  if (cudaMallocHost(&p, size_t(bytes)) == cudaSuccess) return p;
  cudaGetLastError();
  return nullptr;
}
void release_pinned(void* p) noexcept {
  settle();
  const NotCaptured call;
  cudaFreeHost(p);
}

std::shared_ptr<void> make_stream(int index, bool urgent) {
  make_current(index);
  int usual = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&usual, &highest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t s = nullptr;
  check(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, urgent ? highest : usual),
        "cudaStreamCreate");
  return {s, [](void* p) { cudaStreamDestroy(stream_of(p)); }};
}
std::shared_ptr<void> record(void* stream) {
  cudaEvent_t e = nullptr;
  check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreate");
  std::shared_ptr<void> held(e, [](void* p) { cudaEventDestroy(event_of(p)); });
  check(cudaEventRecord(e, stream_of(stream)), "cudaEventRecord");
  return held;
}
void wait(void* stream, void* event) {
  check(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0), "cudaStreamWaitEvent");
}
void sync_stream(void* stream) { check(cudaStreamSynchronize(stream_of(stream)), "cudaStreamSynchronize"); }
void sync_event(void* event) {
  settle();
  check(cudaEventSynchronize(event_of(event)), "cudaEventSynchronize");
}
bool event_ready(void* event) {
  settle();
  const NotCaptured call;
  const cudaError_t status = cudaEventQuery(event_of(event));
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  return true;
}
void copy(void* to, const void* from, int64_t bytes, void* stream) {
  check(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDefault, stream_of(stream)), "cudaMemcpyAsync");
}
void clear(void* to, int64_t bytes, void* stream) {
  check(cudaMemsetAsync(to, 0, size_t(bytes), stream_of(stream)), "cudaMemsetAsync");
}

}  // namespace cuda
}  // namespace skein
