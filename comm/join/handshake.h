// Handshake: how two processes that know each other's address make one authenticated connection.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/join/sockets.h"

namespace skein::comm {

// What a caller sends first: its rank, the rank it calls, and a keyed BLAKE2b tag that only ranks of the
// exchange can make, because only they know the called rank's `secret`.
inline constexpr size_t kGreetingBytes = 2 * sizeof(Rank) + 32;
std::string greeting(Rank from, Rank to, const std::string& secret);
// The caller's rank; -1 if it sends nothing in time, or cannot prove who it is. `secret` belongs to `me`.
Rank greeted_by(const Fd& caller, Rank me, const std::string& secret, Clock::time_point until);

struct HandshakeOptions {
  Rank me = 0;
  std::vector<Rank> peers;                 // each of them names this rank, too
  std::vector<std::string> secrets;        // 32 bytes a rank, exchanged beforehand
  std::function<Fd(Rank)> dial;            // connects to a listening peer
  std::function<bool(const Fd&)> welcome;  // whether this caller may speak at all
  Clock::time_point deadline;
};
// Makes one connection per peer, which the higher rank dials and proves by its greeting. Callers without a
// proof are hung up on and counted in `strangers`. Throws Timeout, which names the missing ranks.
std::map<Rank, Fd> handshake(const HandshakeOptions&, const Fd& listener, int64_t& strangers);

}  // namespace skein::comm
