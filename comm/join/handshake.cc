// Handshake: dial the lower ranks, answer the higher ones.
#include "comm/join/handshake.h"

#include <algorithm>
#include <thread>

#include "comm/join/reception.h"

namespace skein::comm {
namespace {

void require_sense(const HandshakeOptions& o) {
  if (o.in_vain && o.in_vain()) throw Timeout(-1, "the membership has changed before all had connected");
}

// A peer that is flooded by strangers may have had to hang up.
Line dial(const HandshakeOptions& o, Rank to, Purpose p) {
  do {
    if (auto line = call(o.dial(to), o.mine, to, p, o.deadline, o.deadline)) return std::move(*line);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    require_sense(o);
  } while (Clock::now() < o.deadline);
  throw Timeout(
      to, text("rank ", o.mine.me, " cannot connect to rank ", to, "; is there a firewall between them?"));
}

[[noreturn]] void miss(const HandshakeOptions& o, const Lines& met) {
  std::string missing;
  Rank first = -1;
  for (Rank r : o.peers) {
    if (std::all_of(o.purposes.begin(), o.purposes.end(), [&](Purpose p) { return met.count({r, p}) > 0; }))
      continue;
    missing += text(missing.empty() ? "" : ", ", r);
    if (first < 0) first = r;
  }
  throw Timeout(first, text("rank ", o.mine.me, " waited in vain for the connection of rank ", missing));
}

}  // namespace

Lines handshake(const HandshakeOptions& o, const Fd& listener, Refusals::Counter& strangers) {
  Lines met;
  size_t missing = 0;
  for (Rank r : o.peers)
    for (Purpose p : o.purposes)
      if (r < o.mine.me)
        met.emplace(std::pair(r, p), dial(o, r, p));
      else
        ++missing;
  if (missing == 0) return met;
  Reception callers(listener, o.mine, strangers, o.welcome);
  const auto expected = [&](const Hello& h) {
    return h.from > o.mine.me && std::find(o.peers.begin(), o.peers.end(), h.from) != o.peers.end() &&
           std::find(o.purposes.begin(), o.purposes.end(), h.purpose) != o.purposes.end();
  };
  while (missing > 0) {
    std::optional<Reception::Guest> guest = callers.next(std::min(o.deadline, after(kReview)));
    require_sense(o);
    if (!guest && Clock::now() < o.deadline) continue;
    if (!guest) miss(o, met);
    const Hello& h = guest->hello;
    if (expected(h) && met.emplace(std::pair(h.from, h.purpose), std::move(guest->line)).second)
      --missing;
    else
      ++strangers;
  }
  return met;
}

}  // namespace skein::comm
