// RingExchange: messages of all ranks at the same time, each to its neighbors in a ring.
#pragma once
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::comm {

// kOne: to the next rank only. Then acknowledgments travel by themselves, which otherwise ride on data.
enum class RingWays { kOne, kBoth };

// Every rank calls send() and receive() equally often. Messages belong to rounds (kRounds), as those of
// gossip. Two ranks are each other's only neighbor.
class RingExchange {
 public:
  // The communicator outlives this; `bytes` of a message, a multiple of 4.
  RingExchange(Communicator&, int64_t bytes, RingWays = RingWays::kBoth);
  void send();  // a message to each neighbor, or to the next
  // Waits for the first message of each of its senders that has not been received, and adds it up, as those
  // do whom messages are for.
  void receive();
  int64_t bytes() const { return payload_.bytes(); }
  int64_t messages() const { return int64_t(to_.size()); }  // that a rank sends at once

 private:
  Communicator& comm_;
  const Tensor payload_, sum_;
  std::vector<Rank> to_, from_;
  int64_t sent_ = 0, received_ = 0;
};

// What each of so many exchanges, or sums of vectors of so many bytes, takes on the rank where that is most;
// a first one does not count. Exchanges follow each other at once, before sums there is a pause of so many
// seconds. A vector in several pieces is that many sums at the same time, as slices of a gradient are.
// Collective; they return the same on every rank.
double seconds_of_exchange(Communicator&, int64_t bytes, int repeats);
double seconds_of_sum(Communicator&, int64_t bytes, int64_t pieces, int repeats, double pause);

}  // namespace skein::comm
