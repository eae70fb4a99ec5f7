// Restarts: how often, and after what pause, a fresh worker takes the place of one that died.
#pragma once
#include <chrono>
#include <optional>
#include <vector>

#include "comm/clock.h"

namespace skein::apps {

// Counts the deaths in each seat. It starts nothing and has no clock. The pauses grow, because what has ended
// a worker, such as a full disk or a busy port, needs time to go away.
class Restarts {
 public:
  using Duration = comm::Clock::duration;
  struct Pace {
    Duration first = std::chrono::seconds(1);     // before the first fresh worker; each further one waits
    Duration longest = std::chrono::seconds(30);  // twice as long as the one before, but not longer than this
    Duration anew = std::chrono::minutes(10);     // a life this long sets the seat's count back to 0
  };
  Restarts() : Restarts(0, Pace()) {}  // no worker is replaced
  Restarts(int times, const Pace& pace) : times_(times), pace_(pace) {}

  // A process has died in this seat, `lived` after its start. Returns the pause until a fresh one may start
  // there, and counts it; nothing if `times` of them have been counted.
  std::optional<Duration> after_death(size_t seat, Duration lived);
  int counted(size_t seat) const { return seat < counts_.size() ? counts_[seat] : 0; }
  int times() const { return times_; }

 private:
  int times_;
  Pace pace_;
  std::vector<int> counts_;  // deaths in each seat since its count was last set back
};

}  // namespace skein::apps
