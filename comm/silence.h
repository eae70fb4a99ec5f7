// Silence: how long a peer may be silent before it counts as lost, judged by the pauses that it has
// made so far.
#pragma once
#include "comm/clock.h"

namespace skein::comm {

// In seconds. Equal bounds make the limit a constant.
struct SilenceBounds {
  double least = 10, most = 10;
};

// The limit is four times the longest pause between two signs of life in the last five to ten minutes, within
// the bounds, and `most` for a peer that has been known for less than that.
class Silence {
 public:
  Silence(SilenceBounds, Clock::time_point now);
  void heard(Clock::time_point now);
  // This process did not listen since it last heard the peer, so that time does not count as a pause.
  void excuse(Clock::time_point now) { last_ = now; }
  double limit(Clock::time_point now) const;
  bool is_over(Clock::time_point now) const { return seconds(now - last_) > limit(now); }
  Clock::time_point last() const { return last_; }

 private:
  static double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }
  SilenceBounds bounds_;
  Clock::time_point known_since_, last_, period_began_;
  double longest_ = 0, longest_before_ = 0;  // pauses of this period and of the one before
};

}  // namespace skein::comm
