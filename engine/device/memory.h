// What is thrown when a device's memory runs out, what it says, and a limit below the device's own.
#pragma once
#include "engine/device/device.h"

namespace skein {

// A device has no more memory. `room` is what this process could have had in all, as far as is
// known; 0 means unknown.
struct OutOfMemory : Error {
  OutOfMemory(Device, int64_t asked, int64_t in_use, int64_t room, const std::string& what = {});
  Device device;
  int64_t asked, in_use, room;
  // The same, naming what the memory was for: "a tensor bf16 [256,112,112,64]".
  OutOfMemory of(const std::string& what) const { return {device, asked, in_use, room, what}; }
};
// Says what the calling thread allocates memory for while this object lives, for the message of
// OutOfMemory: "batches of images".
class MemoryFor {
 public:
  explicit MemoryFor(const char* what);
  ~MemoryFor();
  MemoryFor(const MemoryFor&) = delete;

 private:
  const char* const outer_;
};

// Starts MemoryUse::peak again from what is in use now.
void reset_peak(Device);
// Limits what `allocator(d)` may hold, as if the device had no more memory; 0 means no limit.
void limit_memory(Device, int64_t bytes);

}  // namespace skein
