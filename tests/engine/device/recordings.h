// What tests of recorded work share: results as bytes, and memory that keeps nothing.
#pragma once
#include <cstring>
#include <vector>

#include "engine/device/memory_pool.h"
#include "tests/support/testing.h"

namespace skein::testing {

inline std::vector<uint8_t> bytes_of(const Tensor& t) {
  const Tensor host = t.to(kCpu);
  current_stream(t.device()).sync();
  const auto* from = static_cast<const uint8_t*>(host.raw());
  return {from, from + host.bytes()};
}

// Of all blocks, in use or not.
inline int64_t bytes_of(const MemoryPool& pool) {
  int64_t sum = 0;
  for (const auto& [p, bytes] : pool.blocks()) sum += bytes;
  return sum;
}

// Fills all memory of the recording with NaNs.
inline void scramble(const MemoryPool& pool, Device d) {
  current_stream(d).sync();
  for (const auto& [p, bytes] : pool.blocks()) {
    const Tensor block({bytes}, kU8, std::make_shared<Storage>(p, bytes, d, nullptr));
    Tensor noise({bytes}, kU8);
    std::memset(noise.raw(), 0xff, size_t(bytes));
    copy_bytes(block, noise);
  }
  current_stream(d).sync();
}

}  // namespace skein::testing
