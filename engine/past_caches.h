// Which results are written past the caches.
#pragma once
#include "engine/loops/copy_past_caches.h"
#include "engine/tensor.h"

namespace skein {

// Those that are larger than a thread's part of the last cache, which will not hold them until they are read:
// so written, they need not be read from memory first. They begin at a line of the caches; the caller sees to
// it that whole lines are written, and that nothing is added to what is there.
inline bool past_caches(const Tensor& out) {
  constexpr int64_t kFrom = 8 << 20;
  return out.bytes() >= kFrom && reinterpret_cast<uintptr_t>(out.raw()) % kCacheLine == 0;
}

}  // namespace skein
