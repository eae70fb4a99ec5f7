// When a device's memory runs out: what is thrown, what it says, and a limit in the device's place.
#pragma once
#include "engine/device/device.h"

namespace skein {

// A device has no more memory. `room` is what this process could have had in all, as far as one
// could tell; 0: unknown.
struct OutOfMemory : Error {
  OutOfMemory(Device, int64_t asked, int64_t in_use, int64_t room, const std::string& what = {});
  Device device;
  int64_t asked, in_use, room;
  // The same, naming what the memory was for: "a tensor bf16 [256,112,112,64]".
  OutOfMemory of(const std::string& what) const { return {device, asked, in_use, room, what}; }
};
// While it lives, what the calling thread takes memory for, as an OutOfMemory says it: "batches of images".
class MemoryFor {
 public:
  explicit MemoryFor(const char* what);
  ~MemoryFor();
  MemoryFor(const MemoryFor&) = delete;

 private:
  const char* const outer_;
};

// Bytes that `allocator(d)` has of the system's, in use or cached.
int64_t memory_held(Device);
// MemoryUse::peak is from now on the most since now.
void reset_peak(Device);
// From now on `allocator(d)` holds at most so many bytes, as if the device had no more; 0: all there are.
void limit_memory(Device, int64_t bytes);

}  // namespace skein
