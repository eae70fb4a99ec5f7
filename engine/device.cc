// Devices, streams, events and the caching allocators; CUDA's share is one call away in cuda/runtime.h.
#include "engine/device.h"

#include <bit>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <ostream>
#include <unordered_map>
#include <vector>

#include "engine/cuda/runtime.h"
#include "engine/memory.h"

namespace skein {

std::ostream& operator<<(std::ostream& s, Device d) {
  return d.is_host() ? s << "cpu" : s << (d.is_cuda() ? "cuda:" : "apart:") << d.index;
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

namespace {
void retire(Device, void* stream) noexcept;

// A thread's streams. What frees memory after they are gone, at the end of a thread or of the program, must
// not make new ones.
struct Streams {
  std::map<std::pair<int, int>, Stream> of;
  ~Streams() { ended = true; }
  static thread_local bool ended;
};
thread_local bool Streams::ended = false;
Streams& streams() {
  thread_local Streams mine;
  return mine;
}
// The calling thread's stream on the device if it has one already.
Stream* existing_stream(Device d) {
  if (Streams::ended) return nullptr;
  auto& of = streams().of;
  const auto at = of.find({d.kind, d.index});
  return at == of.end() ? nullptr : &at->second;
}
}  // namespace

Stream::Stream(Device d) : device_(d) {
  if constexpr (kHasCuda)
    if (d.is_cuda()) {
      std::shared_ptr<void> made = cuda::make_stream(d.index);
      handle_ = {made.get(), [d, made](void* stream) { retire(d, stream); }};
    }
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

Stream& current_stream(Device d) { return streams().of.try_emplace({d.kind, d.index}, d).first->second; }

namespace {

// Sizes are rounded up to one of four steps per power of two, so a freed block fits the next request of about
// its size and at most a fifth is wasted.
int64_t size_class(int64_t bytes) {
  constexpr int64_t kLeast = 256;
  if (bytes <= kLeast) return kLeast;
  const int64_t step = std::max<int64_t>(64, int64_t(std::bit_floor(uint64_t(bytes - 1))) / 4);
  return (bytes + step - 1) / step * step;
}

// A GPU's block goes back to the stream it was taken on, whose later work follows its earlier work on the
// block. Freed by a thread with another stream, the block is not used again before that stream has come so
// far. Work on a third stream is its owner's to wait for. Host memory knows no streams.
class CachingAllocator final : public Allocator {
 public:
  using Take = void* (*)(int index, int64_t bytes);
  using Give = void (*)(int index, void*) noexcept;
  CachingAllocator(Device d, Take take, Give give) : device_(d), take_(take), give_(give) {}

  void* take(int64_t asked) override {
    const int64_t bytes = size_class(asked);
    void* const stream = device_.is_cuda() ? current_stream(device_).handle() : nullptr;
    {
      std::lock_guard lock(mutex_);
      use_.now += bytes;
      use_.peak = std::max(use_.peak, use_.now);
      if (void* p = reuse(stream, bytes)) return p;
      if (void* p = stream ? reuse(nullptr, bytes) : nullptr) return p;
    }
    void* p = from_system(bytes);
    if (!p) {  // what lies unused may be what is missing
      release();
      p = from_system(bytes);
    }
    std::lock_guard lock(mutex_);
    if (!p) {
      use_.now -= bytes;
      throw OutOfMemory(device_, asked, use_.now, room());
    }
    if (stream) owner_[p] = stream;
    return p;
  }
  void give(void* p, int64_t asked) noexcept override {
    const int64_t bytes = size_class(asked);
    Stream* const mine = device_.is_cuda() ? existing_stream(device_) : nullptr;
    std::lock_guard lock(mutex_);
    use_.now -= bytes;
    if (!device_.is_cuda()) return free_[{nullptr, bytes}].push_back({p, {}});
    const auto owner = owner_.find(p);
    void* const stream = owner == owner_.end() ? nullptr : owner->second;
    Block block{p, {}};
    try {
      if (mine && mine->handle() != stream) block.after = mine->record();
      free_[{stream, bytes}].push_back(std::move(block));
    } catch (...) {  // a lost device: the block is lost with it, and whoever uses the device next is told
    }
  }
  Device device() const override { return device_; }
  void release() {
    std::lock_guard lock(mutex_);
    for (auto& [key, blocks] : free_) {
      for (const Block& b : blocks) {
        owner_.erase(b.p);
        give_(device_.index, b.p);  // waits for the device
        held_ -= key.second;
      }
      blocks.clear();
    }
  }
  // The stream has done all its work and is about to go: its blocks are anybody's.
  void retire(void* stream) {
    std::lock_guard lock(mutex_);
    std::erase_if(owner_, [=](const auto& o) { return o.second == stream; });
    for (auto at = free_.begin(); at != free_.end();) {
      if (at->first.first != stream) {
        ++at;
        continue;
      }
      auto& to = free_[{nullptr, at->first.second}];
      std::move(at->second.begin(), at->second.end(), std::back_inserter(to));
      at = free_.erase(at);
    }
  }
  MemoryUse use() {
    std::lock_guard lock(mutex_);
    return use_;
  }
  int64_t held() {
    std::lock_guard lock(mutex_);
    return held_;
  }
  void reset_peak() {
    std::lock_guard lock(mutex_);
    use_.peak = use_.now;
  }
  void limit(int64_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
  }

 private:
  struct Block {
    void* p;
    Event after;
  };
  void* from_system(int64_t bytes) {
    {
      std::lock_guard lock(mutex_);
      if (limit_ > 0 && held_ + bytes > limit_) return nullptr;
      held_ += bytes;
    }
    void* p = take_(device_.index, bytes);
    if (p) return p;
    std::lock_guard lock(mutex_);
    held_ -= bytes;
    return nullptr;
  }
  // With the lock: what this process can have of the device's memory.
  int64_t room() const {
    if (limit_ > 0) return limit_;
    if constexpr (kHasCuda)
      if (device_.is_cuda()) return held_ + cuda::free_memory(device_.index);
    return 0;
  }
  void* reuse(void* stream, int64_t bytes) {
    auto& blocks = free_[{stream, bytes}];
    if (blocks.empty()) return nullptr;
    const Block b = std::move(blocks.back());
    blocks.pop_back();
    if (device_.is_cuda()) {
      Stream& mine = current_stream(device_);
      mine.wait(b.after);
      owner_[b.p] = mine.handle();
    }
    return b.p;
  }

  const Device device_;
  const Take take_;
  const Give give_;
  std::mutex mutex_;
  std::map<std::pair<void*, int64_t>, std::vector<Block>> free_;  // by stream and size
  std::unordered_map<void*, void*> owner_;                        // the stream each block belongs to
  MemoryUse use_;
  int64_t held_ = 0, limit_ = 0;  // of the system's memory
};

void* take_host(int, int64_t bytes) { return std::aligned_alloc(64, size_t((bytes + 63) / 64 * 64)); }
void give_host(int, void* p) noexcept { std::free(p); }

// Never destroyed: tensors in static storage may outlive any order of destruction.
CachingAllocator& caching(Device d) {
  static auto& all = *new std::map<std::pair<int, int>, CachingAllocator*>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  CachingAllocator*& a = all[{d.kind, d.index}];
  if (!a) {
    if constexpr (kHasCuda)
      if (d.is_cuda()) a = new CachingAllocator(d, cuda::allocate, cuda::release);
    CHECK(a || !d.is_cuda(), "this is a CPU-only build; configure with the CUDA toolkit for", d);
    if (!a) a = new CachingAllocator(d, take_host, give_host);
  }
  return *a;
}

void retire(Device d, void* stream) noexcept {
  if constexpr (kHasCuda) {
    try {
      cuda::sync_stream(stream);
    } catch (const Error&) {  // at the end of the program the driver may have gone first
    }
    caching(d).retire(stream);
  }
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
int64_t memory_held(Device d) { return caching(d).held(); }
void reset_peak(Device d) { caching(d).reset_peak(); }
void limit_memory(Device d, int64_t bytes) { caching(d).limit(bytes); }

}  // namespace skein
