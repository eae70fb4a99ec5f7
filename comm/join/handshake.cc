// Handshake: dial the lower ranks, answer the higher ones.
#include "comm/join/handshake.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace skein::comm {
namespace {

constexpr size_t kTag = crypto_generichash_BYTES;
static_assert(kGreetingBytes == 2 * sizeof(Rank) + kTag);

// The rank of the caller; -1 if it cannot prove it.
Rank identify(const HandshakeOptions& m, const Fd& caller) {
  const auto soon = std::min(m.deadline, Clock::now() + std::chrono::seconds(5));
  return m.welcome(caller) ? greeted_by(caller, m.me, m.secrets[size_t(m.me)], soon) : -1;
}

}  // namespace

std::string greeting(Rank from, Rank to, const std::string& secret) {
  const Rank both[2] = {from, to};
  std::string tag(kTag, 0);
  crypto_generichash(reinterpret_cast<unsigned char*>(tag.data()), kTag,
                     reinterpret_cast<const unsigned char*>(both), sizeof both,
                     reinterpret_cast<const unsigned char*>(secret.data()), secret.size());
  return std::string(reinterpret_cast<const char*>(both), sizeof both) + tag;
}

Rank greeted_by(const Fd& caller, Rank me, const std::string& secret, Clock::time_point until) {
  std::string words;
  if (!read_all(caller, words, kGreetingBytes, until)) return -1;
  Rank from;
  std::memcpy(&from, words.data(), sizeof from);
  const std::string expected = greeting(from, me, secret);
  return sodium_memcmp(words.data(), expected.data(), expected.size()) == 0 ? from : -1;
}

std::map<Rank, Fd> handshake(const HandshakeOptions& m, const Fd& listener, int64_t& strangers) {
  std::map<Rank, Fd> met;
  size_t expected = 0;
  for (Rank r : m.peers) {
    if (r > m.me) ++expected;
    if (r >= m.me) continue;
    Fd s = m.dial(r);
    if (!s || !write_all(s, greeting(m.me, r, m.secrets[size_t(r)]), m.deadline))
      throw Timeout(
          r, text("rank ", m.me, " cannot connect to rank ", r, "; is there a firewall between them?"));
    met[r] = std::move(s);
  }
  while (expected > 0) {
    Fd caller = accept_before(listener, m.deadline);
    if (!caller) {
      std::string missing;
      Rank first = -1;
      for (Rank r : m.peers) {
        if (met.count(r)) continue;
        missing += text(missing.empty() ? "" : ", ", r);
        if (first < 0) first = r;
      }
      throw Timeout(first, text("rank ", m.me, " waited in vain for the connection of rank ", missing));
    }
    const Rank from = identify(m, caller);
    if (from <= m.me || std::find(m.peers.begin(), m.peers.end(), from) == m.peers.end() || met.count(from)) {
      ++strangers;
      continue;
    }
    met[from] = std::move(caller);
    --expected;
  }
  return met;
}

}  // namespace skein::comm
