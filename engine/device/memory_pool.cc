// A pool's blocks: taken once from the device's allocator, then by size class from what was freed.
#include "engine/device/memory_pool.h"

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "engine/device/caching_allocator.h"
#include "engine/device/recording.h"

namespace skein {

namespace {
constinit thread_local MemoryPool* g_pool = nullptr;
}

class MemoryPool::Blocks final : public Allocator {
 public:
  explicit Blocks(Device d) : device_(d), from_(allocator(d)) {}

  void* take(int64_t asked) override {
    const int64_t bytes = size_class(asked);
    const std::lock_guard lock(mutex_);
    std::vector<void*>& free = free_[bytes];
    void* p = nullptr;
    if (free.empty()) {
      p = from_.take(bytes);
      all_.emplace_back(p, bytes);
    } else {
      p = free.back();
      free.pop_back();
    }
    ++out_;
    if (records(device_)) recorded_.insert(p);
    return p;
  }
  void give(void* p, int64_t asked) noexcept override {
    const int64_t bytes = size_class(asked);
    bool last = false;
    {
      const std::lock_guard lock(mutex_);
      --out_;
      if (recorded_.erase(p) == 0 && records(device_)) older_memory_freed();
      if (closed_)
        from_.give(p, bytes);
      else
        free_[bytes].push_back(p);
      last = closed_ && out_ == 0;
    }
    if (last) delete this;
  }
  Device device() const override { return device_; }

  void close() noexcept {
    bool last = false;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [bytes, blocks] : free_)
        for (void* p : blocks) from_.give(p, bytes);
      free_.clear();
      closed_ = true;
      last = out_ == 0;
    }
    if (last) delete this;
  }
  std::vector<std::pair<void*, int64_t>> all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  const Device device_;
  Allocator& from_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<void*>> free_;  // by size class
  std::vector<std::pair<void*, int64_t>> all_;
  std::set<void*> recorded_;  // in use, and taken while a recording was made
  int64_t out_ = 0;
  bool closed_ = false;
};

MemoryPool::MemoryPool(Device d)
    : blocks_([d] {
        const Use none(nullptr);  // so that blocks do not come from another pool
        return new Blocks(d);
      }()) {}
MemoryPool::~MemoryPool() { blocks_->close(); }

std::vector<std::pair<void*, int64_t>> MemoryPool::blocks() const { return blocks_->all(); }

MemoryPool::Use::Use(MemoryPool* pool) : outer_(g_pool) { g_pool = pool; }
MemoryPool::Use::~Use() { g_pool = outer_; }

Allocator* pool_in_use(Device d) {
  if (!g_pool || g_pool->blocks_->device() != d) return nullptr;
  return g_pool->blocks_;
}

}  // namespace skein
