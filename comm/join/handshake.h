// Handshake: how ranks that know each other's addresses make authenticated connections, one a
// pair and purpose.
#pragma once
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "comm/join/line.h"
#include "comm/refusals.h"

namespace skein::comm {

struct HandshakeOptions {
  Credentials mine;
  std::vector<Rank> peers;                 // each of them names this rank, too
  std::vector<Purpose> purposes;           // the same on all of them
  std::function<Fd(Rank)> dial;            // connects to a listening peer
  std::function<bool(const Fd&)> welcome;  // whether this caller may speak at all; empty: all may
  Clock::time_point deadline;
  std::function<bool()> in_vain = {};  // between attempts: whether there is no point in waiting
};
using Lines = std::map<std::pair<Rank, Purpose>, Line>;
// Makes the connections, which the higher rank of a pair dials. Callers that cannot prove who they are are
// hung up on and counted. Throws Timeout, which names the missing ranks, or says that it is in vain.
Lines handshake(const HandshakeOptions&, const Fd& listener, Refusals::Counter& strangers);

}  // namespace skein::comm
