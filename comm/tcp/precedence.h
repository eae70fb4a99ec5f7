// Precedence: which of the messages of rounds that share a host's cable move on, and which wait.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/clock.h"

namespace skein::comm {

// The message at the front of a connection, in one of its two directions.
struct Passage {
  std::optional<int64_t> round = {};  // round_of() it; none: there is no message, or it belongs to no round
  bool stopped = false;               // the other end wants it to wait
  Clock::time_point moved = {};       // when some of it last did
};

// Whether each may move: not while an older round's does. Two that share a cable both arrive when the younger
// one would have arrived anyway, and those that need the older one, with all that wait for them, would have
// waited for nothing. A message that is stopped, or has not moved for kPause, holds up no other.
inline constexpr Clock::duration kPause = std::chrono::milliseconds(20);
std::vector<bool> may_move(const std::vector<Passage>&, Clock::time_point now);

}  // namespace skein::comm
