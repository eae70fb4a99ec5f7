// A block of memory that tensors share.
#pragma once
#include <atomic>
#include <memory>

#include "engine/device/device.h"

namespace skein {

// Something computed from the bytes of a block. It is current until they are written.
struct Derived {
  std::atomic<bool> current{false};
};

// A block of memory and the allocator that it is returned to.
class Storage {
 public:
  Storage(int64_t bytes, Allocator& from)
      : data(from.take(bytes)), bytes(bytes), from_(&from), device_(from.device()) {
    watched_ = device_.kind == Device::kApart;
  }
  // Memory of something else (a mapped file, a shared window); `keep` lives as long as the storage.
  Storage(void* data, int64_t bytes, Device d, std::shared_ptr<void> keep)
      : data(data), bytes(bytes), from_(nullptr), device_(d), keep_(std::move(keep)) {}
  ~Storage() {
    if (from_) from_->give(data, bytes);
  }
  Storage(const Storage&) = delete;
  Device device() const { return device_; }

  // Must be called before the host reads or writes the block. Throws Error if the host may not
  // access this device's memory.
  void used_by_host() const {
    if (watched_) note_use(true);
  }
  // Must be called before a device or a peer writes the block.
  void written() const {
    if (watched_) note_use(false);
  }
  // What was computed from this block (its 16-bit copy: vectors/narrow.h). Either call above marks it as out
  // of date. keep() is called once, before other threads know the block.
  const std::shared_ptr<Derived>& derived() const { return derived_; }
  void keep(std::shared_ptr<Derived> d) { derived_ = std::move(d), watched_ = true; }
  void* const data;
  const int64_t bytes;

 private:
  void note_use(bool by_host) const;
  Allocator* from_;
  Device device_;
  bool watched_ = false;
  std::shared_ptr<Derived> derived_;
  std::shared_ptr<void> keep_;
};

}  // namespace skein
