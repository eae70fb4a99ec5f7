// Memory of recorded work: what a body allocates while it is recorded stays in place for as long as the
// recording may be replayed.
#pragma once
#include <utility>
#include <vector>

#include "engine/device/device.h"

namespace skein {

// Takes blocks from the device's allocator and returns them in its destructor. A freed block serves the
// pool's next request of its size class at once, because all work that uses the pool is ordered on one
// stream, or on streams that were joined to it before the block is freed. Blocks that are still in use when
// the pool is destroyed are returned when they are freed. Thread-safe, except for Use.
class MemoryPool {
 public:
  explicit MemoryPool(Device);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;

  // While it lives the calling thread's allocator(device) is the pool. Nests.
  class Use {
   public:
    explicit Use(MemoryPool* pool);  // null: no pool
    ~Use();
    Use(const Use&) = delete;

   private:
    MemoryPool* const outer_;
  };

  // All its blocks, in use or not, with their bytes.
  std::vector<std::pair<void*, int64_t>> blocks() const;

 private:
  class Blocks;
  friend Allocator* pool_in_use(Device);
  Blocks* const blocks_;  // deletes itself once the pool is destroyed and the last block returned
};

// The pool the calling thread takes its memory of this device from, or null.
Allocator* pool_in_use(Device);

}  // namespace skein
