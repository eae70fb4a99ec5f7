// Counts restarts and doubles pauses.
#include "apps/launch/crew/restarts.h"

#include <algorithm>

namespace skein::apps {

std::optional<Restarts::Duration> Restarts::after_death(size_t seat, Duration lived) {
  if (seat >= counts_.size()) counts_.resize(seat + 1, 0);
  int& count = counts_[seat];
  if (lived >= pace_.anew) count = 0;
  if (count >= times_) return {};
  Duration pause = std::min(pace_.first, pace_.longest);
  for (int i = 0; i < count && pause < pace_.longest; ++i) pause = std::min(2 * pause, pace_.longest);
  ++count;
  return pause;
}

}  // namespace skein::apps
