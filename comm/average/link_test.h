// Link test: how long messages take between each pair of ranks.
#pragma once
#include <cstdint>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::comm {

struct LinkTestOptions {
  std::vector<int64_t> bytes = {4, int64_t(1) << 16, int64_t(1) << 20, int64_t(16) << 20};  // multiples of 4
  int repeats = 7;         // round trips of each size, after a first one that does not count
  int short_repeats = 51;  // the same for messages up to 4 KiB
};

// For one size the seconds one way between two ranks, [from * ranks + to]; 0 from a rank to itself. They
// are half the median round trip that the lower rank measures, packing and landing included, so the
// table is symmetric.
struct LinkTimes {
  int64_t bytes = 0;
  int repeats = 0;
  std::vector<double> seconds;
};

// Tests one pair at a time while the others wait, so that pairs do not disturb each other. Collective;
// returns the same on every rank.
std::vector<LinkTimes> test_links(Communicator&, const LinkTestOptions& = {});

}  // namespace skein::comm
