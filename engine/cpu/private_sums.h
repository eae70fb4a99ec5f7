// PrivateSums: what a weight gradient adds up over blocks of images, a sum a thread.
#pragma once
#include <omp.h>

#include <algorithm>

#include "engine/backend.h"

namespace skein::cpu {

// Which thread makes which part, and the order in which their sums are added, depend on the number of threads
// alone: equal calls give equal bits.
class PrivateSums {
 public:
  static int64_t threads_for(int64_t blocks) { return std::min<int64_t>(omp_get_max_threads(), blocks); }

  // Several threads at once call make(first, count, end, sums, add) for blocks that follow one another, at
  // most `at_once`; a thread's last block is the one before `end`. It sets all `size` sums to those of its
  // blocks or, if `add`, adds to them.
  template <class Make>
  PrivateSums(int64_t size, int64_t blocks, int64_t at_once, const Make& make)
      : size_(size), threads_(threads_for(blocks)), sums_({threads_ * size}) {
#pragma omp parallel for schedule(static, 1) num_threads(int(threads_))
    for (int64_t t = 0; t < threads_; ++t) {
      const int64_t from = blocks * t / threads_, to = blocks * (t + 1) / threads_;
      for (int64_t i = from; i < to; i += at_once)
        make(i, std::min(at_once, to - i), to, sums_.data<float>() + t * size_, i > from);
    }
  }

  // to[i] = the threads' sums of from + i, for i < n.
  void total(int64_t from, int64_t n, float* to) const {
    const float* sums = sums_.data<float>() + from;
    std::copy(sums, sums + n, to);
    for (int64_t t = 1; t < threads_; ++t)
      for (int64_t i = 0; i < n; ++i) to[i] += sums[t * size_ + i];
  }

 private:
  const int64_t size_, threads_;
  const Tensor sums_;  // [thread][size]
};

// y <- v + beta y, whatever y is if beta is 0.
inline void settle(float& y, float v, float beta) { y = beta == 0 ? v : v + beta * y; }

}  // namespace skein::cpu
