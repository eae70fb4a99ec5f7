// Keeps freed blocks by size and stream, and owns the allocators of the process.
#include "engine/device/caching_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>

#include "engine/device/memory.h"
#include "engine/device/memory_pool.h"
#include "engine/device/recording.h"
#include "engine/seam.h"

namespace skein {

int64_t size_class(int64_t bytes) {
  constexpr int64_t kLeast = 256, kLarge = 1 << 20;
  if (bytes <= kLeast) return kLeast;
  const int64_t steps = bytes <= kLarge ? 4 : 32;
  const int64_t step = std::max<int64_t>(64, int64_t(std::bit_floor(uint64_t(bytes - 1))) / steps);
  return (bytes + step - 1) / step * step;
}

void* CachingAllocator::take(int64_t asked) {
  const int64_t bytes = size_class(asked);
  void* const stream = device_.is_cuda() ? current_stream(device_).handle() : nullptr;
  {
    std::lock_guard lock(mutex_);
    if (void* p = reuse(stream, bytes)) return p;
    if (void* p = stream ? reuse(nullptr, bytes) : nullptr) return p;
  }
  void* p = from_system(bytes);
  // Releasing unused blocks may make enough room. It waits for the device, which a recording cannot do.
  if (!p && !records(device_)) {
    release();
    p = from_system(bytes);
  }
  std::lock_guard lock(mutex_);
  if (!p) throw OutOfMemory(device_, asked, use_.now, room());
  if (stream) owner_[p] = stream;
  count(bytes);
  return p;
}

void CachingAllocator::give(void* p, int64_t asked) noexcept {
  const int64_t bytes = size_class(asked);
  Stream* const mine = device_.is_cuda() ? existing_stream(device_) : nullptr;
  // Memory that a recording allocates goes back to its pool, so this block is older than the recording.
  const bool recording = records(device_);
  if (recording) older_memory_freed();
  std::lock_guard lock(mutex_);
  use_.now -= bytes;
  if (!device_.is_cuda()) return free_[{nullptr, bytes}].push_back({p, {}});
  const auto owner = owner_.find(p);
  void* const stream = owner == owner_.end() ? nullptr : owner->second;
  Block block{p, {}};
  try {
    if (mine && mine->handle() != stream) {
      if (recording) return;  // no stream could wait for an event of a capture: the block is lost
      block.after = mine->record();
    }
    free_[{stream, bytes}].push_back(std::move(block));
  } catch (...) {  // the device is lost and the block with it; the next use of the device reports it
  }
}

void CachingAllocator::release() {
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

void CachingAllocator::retire(void* stream) {
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

MemoryUse CachingAllocator::use() {
  std::lock_guard lock(mutex_);
  return use_;
}

void CachingAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  use_.peak = use_.now;
}

void CachingAllocator::limit(int64_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
}

void* CachingAllocator::from_system(int64_t bytes) {
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

// Of a block that is handed out. Call it with the lock held.
void CachingAllocator::count(int64_t bytes) {
  use_.now += bytes;
  use_.peak = std::max(use_.peak, use_.now);
}

// The bytes of the device's memory that this process can have. Call it with the lock held.
int64_t CachingAllocator::room() const {
  if (limit_ > 0) return limit_;
  return device_.is_cuda() ? held_ + cuda::free_memory(device_.index) : 0;
}

void* CachingAllocator::reuse(void* stream, int64_t bytes) {
  auto& blocks = free_[{stream, bytes}];
  if (blocks.empty()) return nullptr;
  // A recording cannot wait for events outside of it.
  if (records(device_) && !blocks.back().after.ready()) return nullptr;
  const Block b = std::move(blocks.back());
  blocks.pop_back();
  if (device_.is_cuda()) {
    Stream& mine = current_stream(device_);
    if (!records(device_)) mine.wait(b.after);
    owner_[b.p] = mine.handle();
  }
  count(bytes);
  return b.p;
}

namespace {

// Large blocks lie on large pages where the system gives them to who asks: else a pass over images waits for
// the translation of addresses, in a virtual machine twice. What follows the last whole page stays on small
// ones, so no memory is wasted.
void* take_host(int, int64_t bytes) {
  constexpr int64_t kPage = 2 << 20;
  const bool large = bytes >= 2 * kPage;
  const int64_t unit = large ? kPage : 64;
  void* const p = std::aligned_alloc(size_t(unit), size_t((bytes + unit - 1) / unit * unit));
#ifdef MADV_HUGEPAGE
  if (p && large)
    madvise(p, size_t(bytes / kPage * kPage), MADV_HUGEPAGE);  // without it, the pages are small
#endif
  return p;
}
void give_host(int, void* p) noexcept { std::free(p); }

// Never destroyed: tensors in static storage may outlive any order of destruction.
CachingAllocator& caching(Device d) {
  static auto& all = *new std::map<std::pair<int, int>, CachingAllocator*>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  CachingAllocator*& a = all[{d.kind, d.index}];
  if (!a && d.is_cuda()) a = new CachingAllocator(d, cuda::allocate, cuda::release);
  if (!a) a = new CachingAllocator(d, take_host, give_host);
  return *a;
}

}  // namespace

void retire_stream(Device d, void* stream) noexcept {
  try {
    cuda::sync_stream(stream);
  } catch (const Error&) {  // at the end of the program the driver may be gone already
  }
  caching(d).retire(stream);
}

Allocator& allocator(Device d) {
  Allocator* const pool = pool_in_use(d);
  return pool ? *pool : caching(d);
}

Allocator& pinned_allocator() {
  if (cuda_device_count() == 0) return caching(kCpu);
  static auto& pinned = *new CachingAllocator(
      kCpu, [](int, int64_t bytes) { return cuda::allocate_pinned(bytes); },
      [](int, void* p) noexcept { cuda::release_pinned(p); });
  return pinned;
}

void release_cached(Device d) { caching(d).release(); }
MemoryUse memory_use(Device d) { return caching(d).use(); }
void reset_peak(Device d) { caching(d).reset_peak(); }
void limit_memory(Device d, int64_t bytes) { caching(d).limit(bytes); }

}  // namespace skein
