// List, measure, decide, with a gather between each two.
#include "comm/join/choose_network.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "comm/join/interfaces.h"
#include "comm/join/reception.h"
#include "engine/words/split.h"

namespace skein::comm {
namespace {

constexpr int64_t kMost = int64_t(4) << 20;
constexpr auto kLongest = std::chrono::milliseconds(250);
constexpr int kSendBuffer = 256 << 10;  // bytes; what is on its way when the time is up must still drain
constexpr double kAlike = 0.9;  // two rates count as equal if the slower is at least this share of the faster

Clock::time_point in_ms(int ms) { return Clock::now() + std::chrono::milliseconds(ms); }

// What the user has chosen, and where he said so.
struct Wanted {
  std::string said_so, words;      // empty words: nothing
  std::vector<std::string> names;  // any of them will do
};

// UCX takes a list, of which `all`, its default, excludes nothing.
Wanted wanted_of(const TransportOptions& o) {
  const char* const fixed = std::getenv("UCX_NET_DEVICES");
  std::vector<std::string> names = split(fixed ? fixed : "", ',');
  if (!fixed || std::find(names.begin(), names.end(), "all") != names.end())
    return {"--interface", o.interface, {o.interface}};
  return {"UCX_NET_DEVICES", fixed, std::move(names)};
}

// Those that are wanted, in that order, or all. RDMA devices have no addresses: where only they are wanted,
// all interfaces are candidates.
std::vector<Candidate> candidates(const Wanted& wanted) {
  const std::vector<Interface> all = interfaces();
  const std::vector<std::string> rdma = rdma_devices();
  const auto of = [](const Interface& i) { return Candidate{i.name, i.address, i.network(), i.megabits, 0}; };
  std::vector<Candidate> outward, named;
  bool any_rdma = false;
  for (const Interface& i : all)
    if (!i.loopback && !i.inward) outward.push_back(of(i));
  for (const std::string& name : wanted.names) {
    any_rdma = any_rdma || std::find(rdma.begin(), rdma.end(), name) != rdma.end();
    for (const Interface& i : all)
      if (i.name == name) named.push_back(of(i));
  }
  if (!named.empty()) return named;
  if (wanted.words.empty() || any_rdma) return outward;
  std::string there;
  for (const Interface& i : all) there += text(there.empty() ? "" : ", ", i.name, " (", i.address, ")");
  for (const std::string& d : rdma) there += ", " + d;
  throw BadOption(
      text(wanted.said_so, ' ', wanted.words, ": no such interface is up on this host; there are ", there));
}

// How long a caller waits to write, and the listener, who must be free when the caller tries another address.
constexpr int kStalledMs = 5000, kSilentMs = 3000;

// Mbit/s of one connection to a peer's address; 0 if that peer does not answer there.
double measure(const std::string& address, const NetworkCard& peer, const Credentials& mine, Rank who) {
  const auto line = call(connect_tcp({address}, peer.port, in_ms(1000)), mine, who, Purpose::kTrial,
                         in_ms(1000), in_ms(1000));
  if (!line) return 0;
  const Fd& s = line->socket;
  setsockopt(s.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  const std::string block(64 << 10, 'x');
  const auto began = Clock::now();
  int64_t sent = 0;
  while (sent < kMost && Clock::now() - began < kLongest) {
    if (!write_all(s, block, in_ms(kStalledMs))) return 0;
    sent += int64_t(block.size());
  }
  shutdown(s.get(), SHUT_WR);
  std::string answer;
  if (!read_all(s, answer, sizeof sent, in_ms(10000)) || std::memcmp(answer.data(), &sent, sizeof sent) != 0)
    return 0;
  return 8e-6 * double(sent) / seconds_since(began);
}

// Receives what one caller sends and tells it how much that was.
void take_in(const Fd& caller) {
  std::vector<char> room(256 << 10);
  const timeval patience{kSilentMs / 1000, 0};
  setsockopt(caller.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  int64_t got = 0;
  for (ssize_t n; (n = recv(caller.get(), room.data(), room.size(), 0)) > 0;) got += n;
  write_all(caller, std::string(reinterpret_cast<const char*>(&got), sizeof got), in_ms(1000));
}

// Receives from callers of this job, one at a time, for as long as it lives.
class Listener {
 public:
  Listener(const Fd& socket, const Credentials& mine, Refusals::Counter& strangers)
      : thread_([this, &socket, &mine, &strangers] {
          Reception callers(socket, mine, strangers);
          while (!stop_)
            if (const auto guest = callers.next(in_ms(20))) take_in(guest->line.socket);
        }) {}
  ~Listener() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// An address that several hosts have belongs to a bridge inside each of them, whatever its name.
void drop_shared_addresses(std::vector<NetworkCard>& cards, const std::vector<int>& host) {
  std::map<std::string, std::vector<int>> owners;
  for (size_t r = 0; r < cards.size(); ++r)
    for (const Candidate& c : cards[r].candidates) owners[c.address].push_back(host[r]);
  for (NetworkCard& card : cards)
    std::erase_if(card.candidates, [&](const Candidate& c) {
      const std::vector<int>& of = owners[c.address];
      return std::any_of(of.begin(), of.end(), [&](int h) { return h != of[0]; });
    });
}

std::string rate(const Candidate& c) {
  if (c.measured > 0) return text(int64_t(std::lround(c.measured)), " Mbit/s measured");
  return "no answer";
}

}  // namespace

std::string NetworkCard::write() const {
  std::string s = text(port, ' ', told, ' ', candidates.size());
  for (const Candidate& c : candidates)
    s += text(' ', c.name, ' ', c.address, ' ', c.network, ' ', c.declared);
  return s;
}

NetworkCard NetworkCard::read(const std::string& words) {
  NetworkCard card;
  std::istringstream s(words);
  size_t n = 0;
  s >> card.port >> card.told >> n;
  for (Candidate c; n > 0 && s >> c.name >> c.address >> c.network >> c.declared; --n)
    card.candidates.push_back(c);
  if (!s || n > 0 || card.port < 1 || card.port > 65535)
    throw Error("a worker tells something else about its networks than this version of Skein does");
  return card;
}

std::vector<int> fastest(const std::vector<std::vector<Candidate>>& of_hosts) {
  const auto on = [](const std::vector<Candidate>& host, const std::string& network) {
    int best = -1;
    for (size_t i = 0; i < host.size(); ++i)
      if (host[i].network == network && (best < 0 || host[i].measured > host[size_t(best)].measured))
        best = int(i);
    return best;
  };
  std::vector<int> chosen;
  double rate = 0;
  int64_t declared = 0;
  for (const Candidate& c : of_hosts.at(0)) {
    std::vector<int> here;
    double slowest = INFINITY;
    int64_t least = INT64_MAX;
    for (const auto& host : of_hosts) {
      here.push_back(on(host, c.network));
      const Candidate* one = here.back() < 0 ? nullptr : &host[size_t(here.back())];
      slowest = std::min(slowest, one ? one->measured : 0);
      least = std::min(least, one ? one->declared : -1);
    }
    if (!(slowest > 0)) continue;
    const bool alike = slowest > kAlike * rate && rate > kAlike * slowest;
    if (chosen.empty() || (alike ? least > declared : slowest > rate))
      chosen = here, rate = slowest, declared = least;
  }
  if (!chosen.empty()) return chosen;
  for (const auto& host : of_hosts) {
    const auto best = std::max_element(host.begin(), host.end(),
                                       [](const auto& a, const auto& b) { return a.measured < b.measured; });
    chosen.push_back(best == host.end() || best->measured <= 0 ? -1 : int(best - host.begin()));
  }
  return chosen;
}

NetworkChoice choose_network(Exchange& e, const std::vector<int>& host, const TransportOptions& o,
                             Refusals::Counter& strangers) {
  const Rank me = e.rank();
  const Credentials mine{.key = o.key, .me = me, .size = e.size(), .epoch = o.epoch};
  const Wanted wanted = wanted_of(o);
  NetworkCard card{.told = !wanted.words.empty(), .candidates = candidates(wanted)};
  const Fd socket = listen_tcp("", o.ports, card.port);
  std::vector<NetworkCard> cards;
  for (const std::string& words : e.all_gather(card.write())) cards.push_back(NetworkCard::read(words));
  drop_shared_addresses(cards, host);

  std::vector<Rank> leaders;  // the first rank of each host, in rank order
  for (Rank r = 0; r < e.size(); ++r)
    if (std::find(host.begin(), host.begin() + r, host[size_t(r)]) == host.begin() + r) leaders.push_back(r);
  const size_t at = size_t(std::find_if(leaders.begin(), leaders.end(),
                                        [&](Rank r) { return host[size_t(r)] == host[size_t(me)]; }) -
                           leaders.begin());
  std::vector<std::vector<Candidate>> of_hosts;
  bool choice = false;
  for (Rank r : leaders) {
    of_hosts.push_back(cards[size_t(r)].candidates);
    choice = choice || (of_hosts.back().size() > 1 && !cards[size_t(r)].told);
  }
  if (choice) {  // all ranks know whether there is one
    const Listener listener(socket, mine, strangers);
    const Rank next = leaders[(at + 1) % leaders.size()];
    std::string rates;
    if (leaders[at] == me)
      for (const Candidate& c : cards[size_t(next)].candidates)
        rates += text(measure(c.address, cards[size_t(next)], mine, next), ' ');
    const std::vector<std::string> said = e.all_gather(rates);
    for (size_t h = 0; h < leaders.size(); ++h) {
      std::istringstream s(said[size_t(leaders[(h + leaders.size() - 1) % leaders.size()])]);
      for (Candidate& c : of_hosts[h]) s >> c.measured;
    }
  }
  const std::vector<Candidate>& here = of_hosts[at];
  NetworkChoice out;
  const int taken = choice ? fastest(of_hosts)[at] : here.empty() ? -1 : 0;
  if (taken >= 0)
    out.listen = here[size_t(taken)].address, out.addresses = {out.listen};
  else
    out.addresses = own_addresses();
  if (!wanted.words.empty()) {
    out.why = text("network: ", wanted.words, ", as ", wanted.said_so, " says");
    return out;
  }
  if (taken < 0) {
    out.why = choice ? "network: no interface of this host answered; all are listened at" : "";
    return out;
  }
  const Candidate& c = here[size_t(taken)];
  out.why = text("network: ", c.name, " (", c.network, ")", choice ? ", " + rate(c) : ", the only one");
  for (const Candidate& other : here)
    if (&other != &c) out.why += text("; not ", other.name, " (", other.network, "), ", rate(other));
  return out;
}

}  // namespace skein::comm
