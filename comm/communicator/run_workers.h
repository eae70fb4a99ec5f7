// Workers as threads of this process: the shortest way to a world.
#pragma once
#include <functional>

#include "comm/communicator/communicator.h"

namespace skein::comm {

// Calls f(0) to f(n - 1), each on a thread of its own, and returns when all have ended. If any throws, what was
// thrown first is thrown here. `ended`: called on the same thread after that.
void on_threads(int n, const std::function<void(Rank)>& f, const std::function<void(Rank)>& ended = {});

// Calls work(communicator) on n threads, rank 0 to n - 1, and returns when all have ended; each has its share
// of the cores for its computing. If one throws, the others see it leave (PeerLost at their next wait), and
// what it threw is thrown here.
void run_workers(int n, const std::function<void(Communicator&)>& work, const CommunicatorOptions& = {});

}  // namespace skein::comm
