// Calls: how a worker that waits in a step wakes one that has come to a meeting and gossips only when asked.
#pragma once
#include <cstdint>
#include <map>
#include <set>

#include "comm/communicator/communicator.h"

namespace skein::optim {

// Uses the tags 4 and 5 of the communicator it is given, which is always the same one.
class Calls {
 public:
  // Tells those that may wait for this worker that it has come to its next meeting.
  void come(comm::Communicator&, const std::set<comm::Rank>& out_peers);
  // Asks a peer for all gossips up to number q, if it has come and was not asked already. Never waits.
  void ask(comm::Communicator&, comm::Rank peer, int64_t q);
  // What Communicator::take_within() does, which returns nothing also when a peer has come of which the last
  // ask() did not know.
  std::optional<comm::Message> take(comm::Communicator&, double seconds, comm::Rank from, comm::Tag,
                                    int64_t q);
  // The highest number that any other worker has asked for; -1 if none has.
  int64_t wanted(comm::Communicator&);
  // All have come, and the meeting is over.
  void met(comm::Communicator&);

 private:
  bool has_come(comm::Communicator&, comm::Rank);

  int64_t meetings_ = 0;       // over
  std::set<comm::Rank> here_;  // at the next one, as far as this worker has looked
  int64_t wanted_ = -1;
  std::map<comm::Rank, int64_t> asked_;  // up to which number
};

}  // namespace skein::optim
