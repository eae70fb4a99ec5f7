// Points in time, for waits that end.
#pragma once
#include <chrono>

#include "comm/clock.h"

namespace skein::comm {

inline Clock::time_point soon(int milliseconds = 0) {
  return Clock::now() + std::chrono::milliseconds(milliseconds);
}

}  // namespace skein::comm
