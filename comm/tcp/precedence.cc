// Precedence: the oldest round that moves, whatever has its age, and what belongs to no round.
#include "comm/tcp/precedence.h"

#include <algorithm>

namespace skein::comm {

std::vector<bool> may_move(const std::vector<Passage>& all, Clock::time_point now) {
  std::optional<int64_t> oldest;
  for (const Passage& p : all)
    if (p.round && !p.stopped && now - p.moved <= kPause)
      oldest = std::min(oldest.value_or(*p.round), *p.round);
  std::vector<bool> may;
  for (const Passage& p : all) may.push_back(!p.round || !oldest || *p.round <= *oldest);
  return may;
}

}  // namespace skein::comm
