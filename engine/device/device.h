// Where memory lies and work runs: Device, Stream, Event, and the caching allocators.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "engine/base.h"

namespace skein {

struct Device {
  // kApart: host memory that stands for a GPU's in tests. Copies and the algebra of vec.h work on it; any
  // other access from the host throws, where an access to a GPU's memory would end the program.
  enum Kind : uint8_t { kCpu, kCuda, kApart } kind = kCpu;
  int index = 0;
  bool is_cuda() const { return kind == kCuda; }
  bool is_host() const { return kind == kCpu; }
  bool operator==(const Device&) const = default;
};
inline constexpr Device kCpu{};
std::ostream& operator<<(std::ostream&, Device);

// Number of usable CUDA devices; 0 on a CPU build or without a driver. Never throws.
int cuda_device_count();

class Stream;

// A point in a stream's work. Copyable. An empty event, and every event of the CPU, has already happened.
class Event {
 public:
  void sync() const;   // the calling thread waits until it has happened
  bool ready() const;  // has it?

 private:
  friend class Stream;
  std::shared_ptr<void> handle_;
};

// An ordered queue of work on one device. On the CPU work runs inline and waits are no-ops.
class Stream {
 public:
  explicit Stream(Device);  // a new queue of its own
  Device device() const { return device_; }
  void wait(const Event&);  // later work of this stream starts after the event; the host does not wait
  Event record();           // now, in this stream's order
  void sync();              // the host waits for all work queued so far
  void* handle() const { return handle_.get(); }  // cudaStream_t, for the files that speak CUDA

 private:
  Device device_;
  std::shared_ptr<void> handle_;
};

// The stream the calling thread's operations run on. Each thread has one per device, made on first use.
Stream& current_stream(Device);

// Allocates blocks of memory, aligned to at least 64 bytes. Thread-safe. take() throws Error naming the bytes
// asked for when there is no more; give() must be called with the same size.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* take(int64_t bytes) = 0;
  virtual void give(void*, int64_t bytes) noexcept = 0;
  virtual Device device() const = 0;
};

// Caches freed blocks by size class, because training asks for the same sizes every step.
Allocator& allocator(Device);
// Host memory a GPU can read directly; plain cached host memory on a CPU build.
Allocator& pinned_allocator();
// Returns every cached, unused block of `allocator(d)` to the system.
void release_cached(Device);
// Bytes now handed out by `allocator(d)`, and the most there ever were.
struct MemoryUse {
  int64_t now = 0, peak = 0;
};
MemoryUse memory_use(Device);

}  // namespace skein
