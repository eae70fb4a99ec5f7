// Arena: the memory of a rank that all processes of its host see, in one sparse anonymous file.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/join/sockets.h"
#include "engine/device/device.h"

namespace skein::comm {

// The address space of each arena, where so many processes of a host with so much memory map the arenas of
// all: several times that memory, unless as many arenas would not fit into a process.
int64_t arena_bytes(int64_t processes, int64_t memory);

// A mapping of a whole arena, ours or a peer's; unmapped with the last reference. Core dumps leave it out:
// they would make every page of it exist. In a process that is forked from this one it holds the same
// numbers, and no other process sees what is written there.
struct Mapping {
  Mapping(const Fd& fd, int64_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  bool holds(const void* p, int64_t n) const {
    const char* c = static_cast<const char*>(p);
    return c >= base && c + n <= base + bytes;
  }
  void make_private() const;  // after a fork
  char* base = nullptr;
  const int64_t bytes;

 private:
  const Fd file_;
  char* range_ = nullptr;
};

// An allocator over a memfd of arena_bytes(). Only touched pages exist, so peers map it once and need not
// hear of later allocations. /dev/shm is not involved. Freed blocks are kept by size class.
class Arena final : public Allocator {
 public:
  // reserved: how many first bytes are control structures; they are zero
  Arena(int64_t bytes, int64_t reserved, Rank owner);
  // To be called when its owner ends. The arena ends when its last block is freed, because x and g may
  // outlive a transport.
  void retire();
  void* take(int64_t bytes) override;
  void give(void*, int64_t bytes) noexcept override;
  Device device() const override { return kCpu; }
  const Fd& file() const { return file_; }
  const std::shared_ptr<Mapping>& mapping() const { return mapping_; }
  int64_t offset_of(const void* p) const { return static_cast<const char*>(p) - mapping_->base; }

 private:
  ~Arena() override = default;
  Fd file_;
  std::shared_ptr<Mapping> mapping_;
  std::mutex mutex_;
  const int64_t color_;
  int64_t next_, live_ = 0;
  bool retired_ = false;
  std::map<int64_t, std::vector<void*>> free_;
};

}  // namespace skein::comm
