// Measures times: clocks, and the time of a pass on a device.
#pragma once
#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include "engine/device/device.h"

namespace skein::bench {

inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline double cpu_seconds() {  // of all threads of the process
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// How long to warm up and to measure. A GPU that was idle raises its clocks for most of a second.
struct Effort {
  double warm_up = 0.05;  // seconds, at least, and two calls
  int calls = 5;          // measured, at least
};
inline constexpr Effort kWholeSteps{1.0, 20};

// Seconds that a call of f takes: the median of five rounds of at least 20 ms each, by the host's clock
// around a synchronized stream.
template <class F>
double seconds_of(Device d, const F& f, const Effort& effort = {}) {
  constexpr int kRounds = 5;
  Stream& stream = current_stream(d);
  const auto timed = [&](int n) {
    stream.sync();
    const double from = wall_seconds();
    for (int i = 0; i < n; ++i) f();
    stream.sync();
    return wall_seconds() - from;
  };
  timed(2);
  double once = timed(1);
  for (double warm = once; warm < effort.warm_up; warm += once) once = timed(1);
  const int n = std::max((effort.calls + kRounds - 1) / kRounds, int(0.02 / std::max(once, 1e-6)));
  std::vector<double> rounds;
  for (int r = 0; r < kRounds; ++r) rounds.push_back(timed(n) / n);
  std::sort(rounds.begin(), rounds.end());
  return rounds[kRounds / 2];
}

}  // namespace skein::bench
