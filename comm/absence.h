// Absence: what time waits do not count, because this process itself stood still.
#pragma once
#include "comm/membership.h"

namespace skein::comm {

// For a loop that waits in naps and looks at the clock after each: the time since `looked`, if it was so long
// that this process was stopped (Ctrl-Z) or starved, else 0; `looked` becomes now. Who was absent has not
// waited, and the peers were most likely stopped along with it.
inline Clock::duration absence(Clock::time_point& looked) {
  constexpr auto kNap = std::chrono::seconds(2);  // longer than any nap, also on a busy machine
  const Clock::time_point now = Clock::now();
  const Clock::duration gone = now - looked;
  looked = now;
  return gone > kNap ? gone : Clock::duration(0);
}

}  // namespace skein::comm
