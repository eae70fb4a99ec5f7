// Keeps the longest pause of the current period and of the one before.
#include "comm/silence.h"

#include <algorithm>

namespace skein::comm {
namespace {

constexpr auto kPeriod = std::chrono::minutes(5);
constexpr double kTimesThePause = 4;

}  // namespace

Silence::Silence(SilenceBounds b, Clock::time_point now)
    : bounds_(b), known_since_(now), last_(now), period_began_(now) {}

void Silence::heard(Clock::time_point now) {
  if (now - period_began_ >= kPeriod) {
    longest_before_ = now - period_began_ < 2 * kPeriod ? longest_ : 0;
    longest_ = 0;
    period_began_ = now;
  }
  longest_ = std::max(longest_, seconds(now - last_));
  last_ = now;
}

double Silence::limit(Clock::time_point now) const {
  if (seconds(now - known_since_) < bounds_.most) return bounds_.most;
  return std::clamp(kTimesThePause * std::max(longest_, longest_before_), bounds_.least, bounds_.most);
}

}  // namespace skein::comm
