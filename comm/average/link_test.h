// Link test: how long messages take between every two ranks.
#pragma once
#include <cstdint>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::comm {

struct LinkTestOptions {
  std::vector<int64_t> bytes = {4, int64_t(1) << 16, int64_t(1) << 20, int64_t(16) << 20};  // multiples of 4
  int repeats = 7;         // round trips of each size, after one that does not count
  int short_repeats = 51;  // of messages up to 4 KiB
};

// One size: seconds one way between ranks, [from * ranks + to]; a rank to itself 0. Half the median round
// trip, taken by the lower rank, packing and landing included, so the table is symmetric.
struct LinkTimes {
  int64_t bytes = 0;
  int repeats = 0;
  std::vector<double> seconds;
};

// One pair at a time while the others wait, so that no two disturb each other. Collective; the same on every
// rank.
std::vector<LinkTimes> test_links(Communicator&, const LinkTestOptions& = {});

}  // namespace skein::comm
