// The allocator that keeps freed blocks for the next request of their size, and what it asks of streams.
#pragma once
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/device/device.h"

namespace skein {

// The size to which a request is rounded up: four sizes per power of two, so that a freed block fits the next
// request of about its size and at most a fifth is wasted. Above 1 MiB there are 32, because activations fill
// the device and recur in the same sizes at every step. size_class(size_class(n)) == size_class(n).
int64_t size_class(int64_t bytes);

// The calling thread's stream on the device if it has one already; never makes one. Thread-safe.
Stream* existing_stream(Device);
// Must be called before a stream is destroyed: waits for its work and makes its blocks
// available to all streams.
void retire_stream(Device, void* stream) noexcept;

// A freed block of a GPU returns to the stream it was taken on, because that stream's later work follows its
// earlier work on the block. If a thread with another stream frees it, it is not reused before that stream
// reaches this point. If a third stream works on it, the owner must wait for that before freeing it. Host
// memory has no streams.
class CachingAllocator final : public Allocator {
 public:
  using Take = void* (*)(int index, int64_t bytes);  // null when there is no memory left
  using Give = void (*)(int index, void*) noexcept;
  CachingAllocator(Device d, Take take, Give give) : device_(d), take_(take), give_(give) {}

  void* take(int64_t asked) override;
  void give(void* p, int64_t asked) noexcept override;
  Device device() const override { return device_; }
  void release();  // returns all unused blocks to the system; waits for the device
  // The stream has finished all its work and is about to be destroyed: its blocks may serve any stream.
  void retire(void* stream);
  MemoryUse use();
  void reset_peak();
  void limit(int64_t bytes);

 private:
  struct Block {
    void* p;
    Event after;
  };
  void* from_system(int64_t bytes);
  void count(int64_t bytes);
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
