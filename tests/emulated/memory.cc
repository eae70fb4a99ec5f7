// The memory of an emulated device, and the faults of code that misuses it.
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/base.h"
#include "tests/emulated/state.h"

namespace skein::emulated {
namespace {

constexpr size_t kArena = size_t(64) << 30;  // addresses, not memory
constexpr int64_t kRoom = int64_t(4) << 30;  // what a device reports as its size
constexpr size_t kFilled = 64 << 20;         // at most in a block: the rest holds zeros and costs no memory

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

[[noreturn]] void end_with_backtrace() {
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), 2);
  _exit(3);
}

void say_and_die(int, siginfo_t* info, void*) {
  const bool ours = gpu().memory.around(info->si_addr);
  const char* const words =
      ours ? "emulated GPU: the host touched memory of the device\n" : "segmentation fault\n";
  if (write(2, words, strlen(words)) < 0) _exit(3);
  end_with_backtrace();
}

bool mapped(const void* p) {
  unsigned char in_core;
  return mincore(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) / kPage * kPage), 1, &in_core) == 0;
}

}  // namespace

Arena::Arena(bool closed) {
  void* p = mmap(nullptr, kArena, closed ? PROT_NONE : PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fault("no addresses are left for the device's memory");
  first_ = static_cast<char*>(p);
  if (!closed) return;
  // Existing threads have no access by a new key; threads made later inherit their maker's.
  key_ = pkey_alloc(0, PKEY_DISABLE_ACCESS);
  if (key_ >= 0 && pkey_mprotect(first_, kArena, PROT_READ | PROT_WRITE, key_) != 0)
    pkey_free(key_), key_ = -1;
}
void* Arena::take(size_t bytes, int device) {
  if (used_ + whole_pages(bytes) + kPage > kArena) return nullptr;
  void* p = first_ + used_;
  used_ += whole_pages(bytes) + kPage;  // an unused page between blocks
  blocks_[p] = {bytes, device};
  return p;
}
size_t Arena::give(void* p) {
  const auto at = blocks_.find(p);
  if (at == blocks_.end()) return 0;
  const size_t bytes = at->second.bytes;
  madvise(p, whole_pages(bytes), MADV_DONTNEED);
  blocks_.erase(at);
  return bytes;
}
std::optional<int> Arena::device_of(const void* p, size_t bytes) const {
  auto at = blocks_.upper_bound(const_cast<void*>(p));
  if (at == blocks_.begin()) return {};
  --at;
  const bool within =
      static_cast<const char*>(p) + bytes <= static_cast<const char*>(at->first) + at->second.bytes;
  return within ? std::optional(at->second.device) : std::nullopt;
}
bool Arena::around(const void* p) const { return p >= first_ && p < first_ + kArena; }
void Arena::open() { key_ >= 0 ? pkey_set(key_, 0) : mprotect(first_, used_, PROT_READ | PROT_WRITE); }
void Arena::close() {
  if (key_ < 0) mprotect(first_, used_, PROT_NONE);
}

Gpu& gpu() {
  static Gpu* const the = [] {
    struct sigaction action = {};
    action.sa_sigaction = say_and_die;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | int(SA_RESETHAND);
    sigaction(SIGSEGV, &action, nullptr);
    return new Gpu;
  }();
  return *the;
}

void fault(const std::string& what) {
  fprintf(stderr, "emulated GPU: %s\n", what.c_str());
  end_with_backtrace();
}

namespace {
thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
}  // namespace

int device_here() {
  const Lock lock(gpu().mutex);
  gpu().in_use.insert(current_device);
  return current_device;
}
std::vector<int> devices_in_use() {
  const Lock lock(gpu().mutex);
  return {gpu().in_use.begin(), gpu().in_use.end()};
}
void check_place(void* stream) {
  const Lock lock(gpu().mutex);
  if (stream_at(stream).device != device_here())
    fault("a kernel is launched on a stream of another device than the calling thread's");
}
cudaError_t said(cudaError_t e) {
  if (e != cudaSuccess) last_error = e;
  return e;
}

bool reachable(const void* p, size_t bytes) {
  const Lock lock(gpu().mutex);
  return gpu().memory.holds(p, bytes) || gpu().pinned.holds(p, bytes);
}

namespace {

// Calls f(p, i) for every word p of the functor.
template <class F>
void each_word(const void* functor, size_t bytes, F f) {
  for (size_t i = 0; (i + 1) * sizeof(void*) <= bytes; ++i) {
    const void* p;
    memcpy(&p, static_cast<const char*>(functor) + i * sizeof p, sizeof p);
    f(p, i);
  }
}
bool alive(const void* p) { return gpu().memory.holds(p, 0) || gpu().pinned.holds(p, 0); }
bool ours(const void* p) { return gpu().memory.around(p) || gpu().pinned.around(p); }

}  // namespace

// The caller, or the thread it works for, holds the lock.
void check_alive(const char* what, const void* functor, size_t bytes) {
  each_word(functor, bytes, [&](const void* p, size_t i) {
    if (ours(p) && !alive(p)) fault(text("a kernel gets memory that was given back, word ", i, " of ", what));
  });
}
void check_arguments(const char* what, const void* functor, size_t bytes) {
  const Lock lock(gpu().mutex);
  check_alive(what, functor, bytes);
  each_word(functor, bytes, [&](const void* p, size_t i) {
    if (reinterpret_cast<uintptr_t>(p) >= kPage && !ours(p) && mapped(p))
      fault(text("a kernel gets an address of the host's memory, word ", i, " of ", what));
  });
}

}  // namespace skein::emulated

using namespace skein::emulated;

extern "C" {

const char* cudaGetErrorName(cudaError_t e) {
  switch (e) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    default:
      return "an error of the emulated GPU";
  }
}
const char* cudaGetErrorString(cudaError_t e) { return cudaGetErrorName(e); }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* n) {
  const char* asked = getenv("SKEIN_EMULATED_GPUS");
  *n = asked ? atoi(asked) : 1;
  return *n > 0 ? cudaSuccess : said(cudaErrorNoDevice);
}
cudaError_t cudaDriverGetVersion(int* v) { return *v = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* v) { return *v = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int index) {
  int n = 0;
  cudaGetDeviceCount(&n);
  if (index < 0 || index >= n) return said(cudaErrorInvalidDevice);
  *p = {};
  snprintf(p->name, sizeof p->name, "emulated GPU %d", index);
  p->major = 9, p->minor = 0, p->totalGlobalMem = size_t(kRoom), p->multiProcessorCount = 2;
  p->l2CacheSize = 1 << 20;
  memcpy(p->uuid.bytes, "emulated GPU ", 13);
  p->uuid.bytes[13] = char('0' + index);
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int index) {
  int n = 0;
  cudaGetDeviceCount(&n);
  if (index < 0 || index >= n) return said(cudaErrorInvalidDevice);
  current_device = index;
  return device_here(), cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Lock lock(gpu().mutex);
  *total = size_t(kRoom), *free = size_t(std::max<int64_t>(0, kRoom - gpu().used));
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  const Lock lock(gpu().mutex);
  *a = {};
  const std::optional<int> device = gpu().memory.device_of(p, 0), host = gpu().pinned.device_of(p, 0);
  a->type = device ? cudaMemoryTypeDevice : host ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  a->device = device.value_or(host.value_or(-1));
  return cudaSuccess;
}

// New memory begins with NaNs of any type, so that reads before writes are noticed.
cudaError_t cudaMalloc(void** p, size_t bytes) {
  const Lock lock(gpu().mutex);
  if (forbidden()) return said(cudaErrorStreamCaptureUnsupported);
  Gpu& g = gpu();
  *p = g.used + int64_t(bytes) <= kRoom ? g.memory.take(bytes, current_device) : nullptr;
  if (!*p) return said(cudaErrorMemoryAllocation);
  device_here();
  g.used += int64_t(bytes);
  on_device_thread([&] { memset(*p, 0xFF, std::min(bytes, kFilled)); });
  return cudaSuccess;
}
// Like CUDA's, it first completes all queued work.
cudaError_t cudaFree(void* p) {
  const Lock lock(gpu().mutex);
  if (forbidden(true)) return said(cudaErrorStreamCaptureUnsupported);
  run_all();
  device_here();
  gpu().used -= int64_t(gpu().memory.give(p));
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** p, size_t bytes) {
  const Lock lock(gpu().mutex);
  if (forbidden()) return said(cudaErrorStreamCaptureUnsupported);
  *p = gpu().pinned.take(bytes, current_device);
  device_here();
  return *p ? cudaSuccess : said(cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* p) {
  const Lock lock(gpu().mutex);
  if (forbidden(true)) return said(cudaErrorStreamCaptureUnsupported);
  run_all();
  device_here();
  gpu().pinned.give(p);
  return cudaSuccess;
}

}  // extern "C"
