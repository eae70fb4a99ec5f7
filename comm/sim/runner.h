// Runner: a thread of a simulated world, as the baton keeps it.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "comm/sim/strand.h"
#include "comm/threads.h"

namespace skein::comm::sim {

// What is read when it is roused lies in front.
struct Runner {
  explicit Runner(uint64_t w) : worker(w) {}
  // In a large world nothing of it is in the cache when its turn comes. This fetches the frames that it will
  // return through and, below them, those of what it calls then: all at once, and once until it has run.
  void prefetch() {
    constexpr uintptr_t kLine = 64, kAbove = 64, kBelow = 32;
    if (std::exchange(fetched, true)) return;
    for (uintptr_t i = 0; i < kBelow + kAbove; ++i)
      __builtin_prefetch(reinterpret_cast<const void*>(frame + (i - kBelow) * kLine), 1);
  }

  const uint64_t worker;
  bool asleep = true, roused = false, over = false;
  bool fetched = false;
  uintptr_t frame = 0;  // where it sleeps; 0: it has not begun
  Strand strand;
  std::vector<Timeline::ThreadNumber> joiners;
};

}  // namespace skein::comm::sim
