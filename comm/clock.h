// The clock of waits: deadlines, and the time that does not count.
#pragma once
#include <algorithm>
#include <chrono>
#include <limits>

namespace skein::comm {

using Clock = std::chrono::steady_clock;

// The deadline, in seconds, of a wait that only its message or an error ends.
inline constexpr double kForever = std::numeric_limits<double>::infinity();

// The time so many seconds from now; after(kForever) is a century away.
inline Clock::time_point after(double seconds) {
  constexpr double kCentury = 3e9;  // the clock counts nanoseconds: it has room for almost three
  const std::chrono::duration<double> span(std::min(seconds, kCentury));
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(span);
}
inline double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// For a loop that waits in naps and calls this after each: returns the time since `looked` if it was so long
// that this process was stopped (Ctrl-Z) or starved, else 0, and sets `looked` to now. Such time does not
// count as waiting: the peers were most likely stopped as well.
inline Clock::duration absence(Clock::time_point& looked) {
  constexpr auto kNap = std::chrono::seconds(2);  // longer than any nap, even on a busy machine
  const Clock::time_point now = Clock::now();
  const Clock::duration gone = now - looked;
  looked = now;
  return gone > kNap ? gone : Clock::duration(0);
}

}  // namespace skein::comm
