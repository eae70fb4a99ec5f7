// The clock of a run: the machine's or, in a simulated world, the world's; deadlines, and the time that
// does not count.
#pragma once
#include <algorithm>
#include <chrono>
#include <limits>

namespace skein::comm {

class Timeline;

// Whose time the calling thread lives in; null: the machine's. Threads that comm::Thread starts inherit it.
inline thread_local constinit Timeline* timeline_here = nullptr;

// std::chrono::steady_clock, except in a simulated world. All that waits in a run, or times what it does,
// reads this one; tools/check_clocks.py knows the exceptions.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
  static time_point now() {
    return timeline_here ? simulated_now() : time_point(std::chrono::steady_clock::now().time_since_epoch());
  }

 private:
  static time_point simulated_now();
};

// Seconds since some moment in the past, by that clock.
inline double clock_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}
// Seconds since 1970, for people; in a simulated world, since a day in 2020.
double unix_seconds();

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

// Does nothing for so long, or until then.
void nap_until(Clock::time_point);
inline void nap(Clock::duration d) { nap_until(Clock::now() + d); }

// The longest nap, in seconds, of a wait that also looks for what no message announces. In a simulated world
// all but deadlines is announced, and every nap costs an event.
inline double longest_nap() { return timeline_here ? 3600 : 0.02; }

// For a loop that waits in naps and calls this after each: returns the time since `looked` if it was so long
// that this process was stopped (Ctrl-Z) or starved, else 0, and sets `looked` to now. Such time does not
// count as waiting: the peers were most likely stopped as well. In a simulated world it is the time
// for which the worker hung.
Clock::duration simulated_absence(Clock::time_point looked);
inline Clock::duration absence(Clock::time_point& looked) {
  constexpr auto kNap = std::chrono::seconds(2);  // longer than any nap, even on a busy machine
  const Clock::time_point now = Clock::now();
  const Clock::duration gone = timeline_here ? simulated_absence(looked) : now - looked;
  looked = now;
  return gone > kNap ? gone : Clock::duration(0);
}

}  // namespace skein::comm
