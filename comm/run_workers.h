// Workers as threads of this process: the shortest way to a world.
#pragma once
#include <functional>

#include "comm/communicator.h"

namespace skein::comm {

// Calls work(communicator) on n threads, rank 0 to n - 1, and returns when all have ended; each has its share
// of the cores for its computing. If one throws, the others see it leave (PeerLost at their next wait), and
// what it threw is thrown here.
void run_workers(int n, const std::function<void(Communicator&)>& work, const CommunicatorOptions& = {});

}  // namespace skein::comm
