// Meet: how two processes that learned each other's address make one authenticated connection.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/join/sockets.h"

namespace skein::comm {

// What a caller says first: who calls whom, and a keyed BLAKE2b that only those who took part in the exchange
// of `secret`, the called one's, can make.
inline constexpr size_t kGreetingBytes = 2 * sizeof(Rank) + 32;
std::string greeting(Rank from, Rank to, const std::string& secret);
// Who this caller is; -1 if it says nothing in time, or cannot prove it. `secret`: of `me`.
Rank greeted_by(const Fd& caller, Rank me, const std::string& secret, Clock::time_point until);

struct Meeting {
  Rank me = 0;
  std::vector<Rank> peers;                 // with whom; each of them names me
  std::vector<std::string> secrets;        // 32 bytes a rank, exchanged beforehand
  std::function<Fd(Rank)> dial;            // connects to a listening peer
  std::function<bool(const Fd&)> welcome;  // may this caller speak at all?
  Clock::time_point deadline;
};
// One connection per peer: the higher rank dials. The dialer proves with a keyed BLAKE2b tag that it took
// part in the exchange; whoever cannot is hung up on and counted. Throws Timeout naming who did not come.
std::map<Rank, Fd> meet(const Meeting&, const Fd& listener, int64_t& strangers);

}  // namespace skein::comm
