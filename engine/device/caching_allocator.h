// The allocator that keeps freed blocks for the next request of their size, and what it asks of streams.
#pragma once
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/device/device.h"

namespace skein {

// What a block of so many bytes really has: one of four steps per power of two, so that a freed
// block fits the next request of about its size and at most a fifth is wasted; above 1 MiB one of
// 32, as those are the activations, which fill the device and recur in the same sizes at every
// step. size_class(size_class(n)) == size_class(n).
int64_t size_class(int64_t bytes);

// The calling thread's stream on the device if it has one already; makes none. Any thread.
Stream* existing_stream(Device);
// Of a stream that is about to be destroyed: waits for its work and gives its blocks to whoever asks next.
void retire_stream(Device, void* stream) noexcept;

// A GPU's block goes back to the stream it was taken on, whose later work follows its earlier work on the
// block. Freed by a thread with another stream, the block is not used again before that stream has come so
// far. Work on a third stream is its owner's to wait for. Host memory knows no streams.
class CachingAllocator final : public Allocator {
 public:
  using Take = void* (*)(int index, int64_t bytes);  // null when there is no memory left
  using Give = void (*)(int index, void*) noexcept;
  CachingAllocator(Device d, Take take, Give give) : device_(d), take_(take), give_(give) {}

  void* take(int64_t asked) override;
  void give(void* p, int64_t asked) noexcept override;
  Device device() const override { return device_; }
  void release();  // all unused blocks, to the system; waits for the device
  // The stream has done all its work and is about to go: its blocks are anybody's.
  void retire(void* stream);
  MemoryUse use();
  int64_t held();  // of the system's memory
  void reset_peak();
  void limit(int64_t bytes);

 private:
  struct Block {
    void* p;
    Event after;
  };
  void* from_system(int64_t bytes);
  int64_t room() const;
  void* reuse(void* stream, int64_t bytes);

  const Device device_;
  const Take take_;
  const Give give_;
  std::mutex mutex_;
  std::map<std::pair<void*, int64_t>, std::vector<Block>> free_;  // by stream and size
  std::unordered_map<void*, void*> owner_;                        // the stream each block belongs to
  MemoryUse use_;
  int64_t held_ = 0, limit_ = 0;  // of the system's memory
};

}  // namespace skein
