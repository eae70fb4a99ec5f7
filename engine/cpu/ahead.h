// Ahead: what the next piece of work reads, fetched into the caches while this one is multiplied, since then
// the memory has nothing else to do.
#pragma once
#include <array>
#include <utility>

#include "engine/cpu/kernels.h"
#include "engine/tensor.h"

namespace skein::cpu {

class Ahead {
 public:
  void add(const Tensor& t, int64_t from, int64_t n) {  // elements
    const char* first = static_cast<const char*>(t.raw()) + from * size_of(t.dtype());
    spans_[count_++] = {first, first + n * size_of(t.dtype())};
  }
  // The address of so many lines that are next in turn; null if there are none.
  const char* take(int64_t lines) {
    for (auto& [next, end] : spans_)
      if (next < end) return std::exchange(next, next + kLineBytes * lines);
    return nullptr;
  }

 private:
  std::array<std::pair<const char*, const char*>, 2> spans_ = {};
  int count_ = 0;
};

}  // namespace skein::cpu
