// Devices, streams, events and the caching allocators; CUDA's share is one call away in cuda/runtime.h.
#include "engine/device.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <ostream>
#include <vector>

#include "engine/cuda/runtime.h"

namespace skein {

std::ostream& operator<<(std::ostream& s, Device d) {
  return d.is_cuda() ? s << "cuda:" << d.index : s << "cpu";
}

int cuda_device_count() {
  if constexpr (kHasCuda) {
    static const int n = cuda::device_count();
    return n;
  }
  return 0;
}

void Event::sync() const {
  if constexpr (kHasCuda)
    if (handle_) cuda::sync_event(handle_.get());
}
bool Event::ready() const {
  if constexpr (kHasCuda)
    if (handle_) return cuda::event_ready(handle_.get());
  return true;
}

Stream::Stream(Device d) : device_(d) {
  if constexpr (kHasCuda)
    if (d.is_cuda()) handle_ = cuda::make_stream(d.index);
}
void Stream::wait(const Event& e) {
  if constexpr (kHasCuda)
    if (handle_ && e.handle_) cuda::wait(handle_.get(), e.handle_.get());
}
Event Stream::record() {
  Event e;
  if constexpr (kHasCuda)
    if (handle_) e.handle_ = cuda::record(handle_.get());
  return e;
}
void Stream::sync() {
  if constexpr (kHasCuda)
    if (handle_) cuda::sync_stream(handle_.get());
}

Stream& current_stream(Device d) {
  thread_local std::map<std::pair<int, int>, Stream> streams;
  return streams.try_emplace({d.kind, d.index}, d).first->second;
}

namespace {

// Sizes are rounded up to one of four steps per power of two, so a freed block fits the next request of about
// its size and at most a fifth is wasted.
int64_t size_class(int64_t bytes) {
  constexpr int64_t kLeast = 256;
  if (bytes <= kLeast) return kLeast;
  const int64_t step = std::max<int64_t>(64, int64_t(std::bit_floor(uint64_t(bytes - 1))) / 4);
  return (bytes + step - 1) / step * step;
}

class CachingAllocator final : public Allocator {
 public:
  using Take = void* (*)(int index, int64_t bytes);
  using Give = void (*)(int index, void*) noexcept;
  CachingAllocator(Device d, Take take, Give give) : device_(d), take_(take), give_(give) {}

  void* take(int64_t asked) override {
    const int64_t bytes = size_class(asked);
    {
      std::lock_guard lock(mutex_);
      use_.now += bytes;
      use_.peak = std::max(use_.peak, use_.now);
      if (auto& free = free_[bytes]; !free.empty()) {
        void* p = free.back();
        free.pop_back();
        return p;
      }
    }
    void* p = take_(device_.index, bytes);
    if (!p) {  // what lies unused may be what is missing
      release();
      p = take_(device_.index, bytes);
    }
    if (!p) {
      std::lock_guard lock(mutex_);
      use_.now -= bytes;
      throw Error(text("out of memory on ", device_, ": ", asked, " bytes asked for, ", use_.now,
                       " in use; a smaller --batch-size or --image-size needs less"));
    }
    return p;
  }
  void give(void* p, int64_t asked) noexcept override {
    const int64_t bytes = size_class(asked);
    std::lock_guard lock(mutex_);
    use_.now -= bytes;
    free_[bytes].push_back(p);
  }
  Device device() const override { return device_; }
  void release() {
    std::lock_guard lock(mutex_);
    for (auto& [bytes, blocks] : free_) {
      for (void* p : blocks) give_(device_.index, p);
      blocks.clear();
    }
  }
  MemoryUse use() {
    std::lock_guard lock(mutex_);
    return use_;
  }

 private:
  const Device device_;
  const Take take_;
  const Give give_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<void*>> free_;
  MemoryUse use_;
};

void* take_host(int, int64_t bytes) { return std::aligned_alloc(64, size_t((bytes + 63) / 64 * 64)); }
void give_host(int, void* p) noexcept { std::free(p); }

// Never destroyed: tensors in static storage may outlive any order of destruction.
CachingAllocator& caching(Device d) {
  static auto& all = *new std::map<int, CachingAllocator*>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  CachingAllocator*& a = all[d.is_cuda() ? d.index + 1 : 0];
  if (!a) {
    if constexpr (kHasCuda)
      if (d.is_cuda()) a = new CachingAllocator(d, cuda::allocate, cuda::release);
    CHECK(a || !d.is_cuda(), "this is a CPU-only build; configure with the CUDA toolkit for", d);
    if (!a) a = new CachingAllocator(d, take_host, give_host);
  }
  return *a;
}

}  // namespace

Allocator& allocator(Device d) { return caching(d); }

Allocator& pinned_allocator() {
  if constexpr (kHasCuda)
    if (cuda_device_count() > 0) {
      static auto& pinned = *new CachingAllocator(
          kCpu, [](int, int64_t bytes) { return cuda::allocate_pinned(bytes); },
          [](int, void* p) noexcept { cuda::release_pinned(p); });
      return pinned;
    }
  return caching(kCpu);
}

void release_cached(Device d) { caching(d).release(); }
MemoryUse memory_use(Device d) { return caching(d).use(); }

}  // namespace skein
