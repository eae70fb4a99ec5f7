// RingExchange: messages of all ranks at the same time, each to its neighbors in a ring.
#pragma once
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::comm {

// Every rank calls send() and receive() equally often.
class RingExchange {
 public:
  // Neighbors are at most `reach` places away, so from half of the ranks on they are all the others. The
  // communicator outlives this; `bytes` of a message, a multiple of 4.
  RingExchange(Communicator&, Rank reach, int64_t bytes);
  void send();     // a message to each neighbor
  void receive();  // waits for the first message of each neighbor that has not been received
  int64_t bytes() const { return payload_.bytes(); }
  int64_t neighbors() const { return int64_t(neighbors_.size()); }

 private:
  Communicator& comm_;
  const Tensor payload_;
  std::vector<Rank> neighbors_;
  int64_t sent_ = 0, received_ = 0;
};

// What each of so many exchanges takes, one after the other, on the rank where that is most; a first one does not
// count. Collective; returns the same on every rank.
double seconds_of_exchange(Communicator&, Rank reach, int64_t bytes, int repeats);

}  // namespace skein::comm
