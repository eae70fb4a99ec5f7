// How long things take: clocks, and the time of a pass on a device.
#pragma once
#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include "engine/device.h"

namespace skein::bench {

inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline double cpu_seconds() {  // of all threads of the process
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// Seconds that a call of f takes: the median of five rounds of at least 20 ms each, by the host's clock around
// a synchronized stream.
template <class F>
double seconds_of(Device d, const F& f) {
  Stream& stream = current_stream(d);
  const auto timed = [&](int n) {
    stream.sync();
    const double from = wall_seconds();
    for (int i = 0; i < n; ++i) f();
    stream.sync();
    return wall_seconds() - from;
  };
  timed(2);
  const int n = std::max(1, int(0.02 / std::max(timed(1), 1e-6)));
  std::vector<double> rounds;
  for (int r = 0; r < 5; ++r) rounds.push_back(timed(n) / n);
  std::sort(rounds.begin(), rounds.end());
  return rounds[2];
}

}  // namespace skein::bench
