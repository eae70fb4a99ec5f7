// Congestion control of connections that carry bursts: a step's messages, then nothing while workers compute.
#pragma once
#include <chrono>

#include "comm/join/sockets.h"

namespace skein::comm {

// Where the kernel would use BBR, the connection uses CUBIC, or Reno where this process may not choose that.
// BBR takes what a connection has lately carried for what its path can carry, and the pauses between bursts
// are not the path's: at 1 Gbit/s sums of 262 KB stood still for 40 ms again and again (bench/RESULTS.md). To
// be called before connect() or listen(), because BBR's pacing outlasts it.
void suit_bursts(const Fd&);

// The kernel's choice again if the shortest round trip takes so long: such paths lose packets without being
// full, and for that BBR is chosen. To be called once the connection is there.
inline constexpr std::chrono::microseconds kLongPath{10'000};  // more than a building's network takes
void suit_path(const Fd&, std::chrono::microseconds from = kLongPath);

}  // namespace skein::comm
