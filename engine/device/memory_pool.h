// Memory that belongs to recorded work: what a body asks for while it is recorded stays where it is for as
// long as the recording may be replayed.
#pragma once
#include <functional>

#include "engine/device/device.h"

namespace skein {

// Takes blocks of the device's allocator and returns them when it dies. Inside, a freed block serves the next
// request of its size class at once: all that uses the pool is ordered on one stream, or on streams that have
// been joined to it before the block is freed. Blocks that are still in use when the pool dies go back when
// they are freed. Thread-safe but for Use.
class MemoryPool {
 public:
  explicit MemoryPool(Device);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;

  // While it lives the calling thread's allocator(device) is the pool. Nests.
  class Use {
   public:
    explicit Use(MemoryPool* pool);  // null: none
    ~Use();
    Use(const Use&) = delete;

   private:
    MemoryPool* const outer_;
  };

  int64_t bytes() const;  // of all its blocks, in use or not
  // Calls f(block, bytes) for every block. For tests: nothing in them outlives a run of what was recorded.
  void each_block(const std::function<void(void*, int64_t)>& f) const;

 private:
  class Blocks;
  friend Allocator* pool_in_use(Device);
  Blocks* const blocks_;  // destroys itself when the pool is gone and its last block has come back
};

// The pool the calling thread takes its memory of this device from, or null.
Allocator* pool_in_use(Device);

}  // namespace skein
