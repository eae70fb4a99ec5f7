// Workers as threads of this process: the shortest way to several ranks.
#pragma once
#include <functional>

#include "comm/communicator/communicator.h"

namespace skein::comm {

// Calls f(0) to f(n - 1), each on a thread of its own, and returns when all have ended. Rethrows what was
// thrown first. `ended` is called on each thread after f.
void on_threads(int n, const std::function<void(Rank)>& f, const std::function<void(Rank)>& ended = {});

// Calls work(communicator) on n threads, rank 0 to n - 1, and returns when all have ended. Each computes on
// its share of the cores. If one throws, the others see it leave (PeerLost at their next wait), and what it
// threw is rethrown here.
void run_workers(int n, const std::function<void(Communicator&)>& work, const CommunicatorOptions& = {});

}  // namespace skein::comm
