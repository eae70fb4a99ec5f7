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

#include "comm/join/handshake.h"
#include "comm/join/interfaces.h"
#include "comm/join/sockets.h"

namespace skein::comm {
namespace {

constexpr int64_t kMost = int64_t(4) << 20;
constexpr auto kLongest = std::chrono::milliseconds(250);
constexpr int kSendBuffer = 256 << 10;  // bytes; what is on its way when the time is up must still drain
constexpr double kAlike = 0.9;  // rates of which the slower is at least this share of the faster are equal

Clock::time_point in_ms(int ms) { return Clock::now() + std::chrono::milliseconds(ms); }

// What a rank tells the others about itself.
struct Card {
  std::string secret;
  int port = 0;
  bool told = false;  // its user has chosen an interface
  std::vector<Candidate> candidates;

  std::string write() const {
    std::ostringstream s;
    s << secret << port << ' ' << told << ' ' << candidates.size();
    for (const Candidate& c : candidates)
      s << ' ' << c.name << ' ' << c.address << ' ' << c.network << ' ' << c.declared;
    return s.str();
  }
  static Card read(const std::string& words) {
    CHECK(words.size() > 32, "a rank said nothing of its interfaces");
    Card card;
    card.secret = words.substr(0, 32);
    std::istringstream s(words.substr(32));
    size_t n = 0;
    s >> card.port >> card.told >> n;
    for (Candidate c; n > 0 && s >> c.name >> c.address >> c.network >> c.declared; --n)
      card.candidates.push_back(c);
    return card;
  }
};

std::vector<Candidate> candidates(const std::string& wanted) {
  std::vector<Candidate> all;
  std::string there;
  for (const Interface& i : interfaces()) {
    there += text(there.empty() ? "" : ", ", i.name, " (", i.address, ")");
    if (wanted.empty() ? i.loopback || i.inward : i.name != wanted) continue;
    all.push_back({i.name, i.address, i.network(), i.megabits, 0});
  }
  const std::vector<std::string> rdma = rdma_devices();
  for (const std::string& d : rdma) there += ", " + d;
  if (all.empty() && !wanted.empty() && std::find(rdma.begin(), rdma.end(), wanted) == rdma.end())
    throw BadOption(
        text("--interface ", wanted, ": no such interface is up on this host; there are ", there));
  return all;
}

// Mbit/s of one connection to a peer's address; 0 if that peer does not answer there.
double measure(const std::string& address, const Card& peer, Rank me, Rank who) {
  const Fd s = connect_tcp({address}, peer.port, in_ms(1000));
  if (!s || !write_all(s, greeting(me, who, peer.secret), in_ms(1000))) return 0;
  setsockopt(s.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  const std::string block(64 << 10, 'x');
  const auto began = Clock::now();
  int64_t sent = 0;
  while (sent < kMost && Clock::now() - began < kLongest) {
    if (!write_all(s, block, in_ms(5000))) return 0;
    sent += int64_t(block.size());
  }
  shutdown(s.get(), SHUT_WR);
  std::string answer;
  if (!read_all(s, answer, sizeof sent, in_ms(10000)) || std::memcmp(answer.data(), &sent, sizeof sent) != 0)
    return 0;
  return 8e-6 * double(sent) / seconds_since(began);
}

// Receives what one caller sends and tells it how much that was.
void take_in(const Fd& caller, Rank me, const std::string& secret) {
  if (greeted_by(caller, me, secret, in_ms(2000)) < 0) return;
  std::vector<char> room(256 << 10);
  timeval patience{10, 0};
  setsockopt(caller.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  int64_t got = 0;
  for (ssize_t n; (n = recv(caller.get(), room.data(), room.size(), 0)) > 0;) got += n;
  write_all(caller, std::string(reinterpret_cast<const char*>(&got), sizeof got), in_ms(1000));
}

// Receives from callers, one at a time, for as long as it lives.
class Listener {
 public:
  Listener(const Fd& socket, Rank me, std::string secret)
      : thread_([this, &socket, me, secret = std::move(secret)] {
          while (!stop_)
            if (const Fd caller = accept_before(socket, in_ms(20))) take_in(caller, me, secret);
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
void drop_shared_addresses(std::vector<Card>& cards, const std::vector<int>& host) {
  std::map<std::string, std::vector<int>> owners;
  for (size_t r = 0; r < cards.size(); ++r)
    for (const Candidate& c : cards[r].candidates) owners[c.address].push_back(host[r]);
  for (Card& card : cards)
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

NetworkChoice choose_network(Exchange& e, const std::vector<int>& host, const TransportOptions& o) {
  const std::string& wanted = o.interface;
  const Rank me = e.rank();
  const char* const fixed = std::getenv("UCX_NET_DEVICES");
  Card mine{.secret = random_bytes(32),
            .port = 0,
            .told = fixed || !wanted.empty(),
            .candidates = candidates(wanted)};
  const Fd socket = listen_tcp(e.size(), mine.port);
  std::vector<Card> cards;
  for (const std::string& words : e.all_gather(mine.write())) cards.push_back(Card::read(words));
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
    const Listener listener(socket, me, mine.secret);
    const Rank next = leaders[(at + 1) % leaders.size()];
    std::string rates;
    if (leaders[at] == me)
      for (const Candidate& c : cards[size_t(next)].candidates)
        rates += text(measure(c.address, cards[size_t(next)], me, next), ' ');
    const std::vector<std::string> said = e.all_gather(rates);
    for (size_t h = 0; h < leaders.size(); ++h) {
      std::istringstream s(said[size_t(leaders[(h + leaders.size() - 1) % leaders.size()])]);
      for (Candidate& c : of_hosts[h]) s >> c.measured;
    }
  }
  const std::vector<Candidate>& here = of_hosts[at];
  NetworkChoice out;
  const int taken = choice ? fastest(of_hosts)[at] : here.empty() ? -1 : 0;
  if (taken >= 0) out.addresses.push_back(here[size_t(taken)].address);
  for (const std::string& a : own_addresses())
    if (out.addresses.empty() || a != out.addresses[0]) out.addresses.push_back(a);
  if (fixed) {
    out.why = text("network: UCX_NET_DEVICES=", fixed);
    return out;
  }
  if (!wanted.empty()) {
    out.devices = wanted;
    out.why = text("network: ", wanted, ", as --interface says");
    return out;
  }
  if (taken < 0) {
    out.why = choice ? "network: no interface of this host answered; UCX is left to choose" : "";
    return out;
  }
  const Candidate& c = here[size_t(taken)];
  out.devices = c.name;
  for (const std::string& d : o.tls.empty() ? rdma_devices() : std::vector<std::string>())
    out.devices += "," + d;
  out.why = text("network: ", out.devices, " (", c.network, ")", choice ? ", " + rate(c) : ", the only one");
  for (const Candidate& other : here)
    if (&other != &c) out.why += text("; not ", other.name, " (", other.network, "), ", rate(other));
  return out;
}

}  // namespace skein::comm
