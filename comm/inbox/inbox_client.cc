// One outstanding request: sent, repeated, acknowledged.
#include "comm/inbox/inbox_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace skein::comm {
namespace {

// Lost datagrams are rare, but a server on a busy machine is often late.
constexpr auto kFirstPatience = std::chrono::milliseconds(10),
               kLongestPatience = std::chrono::milliseconds(500);

int64_t microseconds_since_1970() { return int64_t(unix_seconds() * 1e6); }

}  // namespace

InboxClient::InboxClient(const Invitation& i, const Secret& key, int worker) : seal_(key, i.salt) {
  if (timeline_here)
    simulated_ = timeline_here->open_port();
  else
    socket_ = udp_socket();
  for (const std::string& a : i.addresses) {
    in_addr host{};
    if (inet_pton(AF_INET, a.c_str(), &host) == 1) servers_.push_back({host.s_addr, htons(uint16_t(i.port))});
  }
  if (servers_.empty()) throw Error("the invitation to the inbox names no address: '" + i.words() + "'");
  now_.worker = worker;
  now_.sequence = microseconds_since_1970();
}

int64_t InboxClient::begin(uint16_t kind, int32_t argument) {
  CHECK(kind < kAcknowledged, kind);
  now_.kind = kind;
  now_.argument = argument;
  ++now_.sequence;
  seal_.sign(now_);
  patience_ = kFirstPatience;
  open_ = true;
  say();
  return now_.sequence;
}

// A datagram that cannot be sent now (a full buffer, an interface that is down) counts as lost.
void InboxClient::say() {
  for (const Address& s : servers_) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = s.port;
    to.sin_addr.s_addr = s.host;
    if (simulated_)
      simulated_->send(&now_, sizeof now_, to);
    else
      sendto(socket_.get(), &now_, sizeof now_, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&to), sizeof to);
  }
  due_ = Clock::now() + patience_;
  patience_ = std::min<Clock::duration>(2 * patience_, kLongestPatience);
}

bool InboxClient::is_answer(const uint8_t* bytes, size_t n, const sockaddr_in& from) {
  if (!acknowledges(bytes, n, now_, seal_)) return false;
  if (!chosen_) servers_ = {{from.sin_addr.s_addr, from.sin_port}};
  return chosen_ = true;
}

bool InboxClient::heard() {
  if (simulated_) {
    while (const auto a = simulated_->receive())
      if (is_answer(a->bytes.data(), a->bytes.size(), a->from)) return true;
    return false;
  }
  for (;;) {
    uint8_t bytes[sizeof(Datagram)];
    sockaddr_in from{};
    socklen_t n = sizeof from;
    const ssize_t got = recvfrom(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC,
                                 reinterpret_cast<sockaddr*>(&from), &n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (is_answer(bytes, size_t(got), from)) return true;
  }
}

bool InboxClient::acknowledged() {
  if (open_ && heard()) open_ = false;
  if (open_ && Clock::now() >= due_) {
    ++repeats_;
    say();
  }
  return !open_;
}

int64_t InboxClient::ask(uint16_t kind, int32_t argument, double deadline,
                         const std::function<void()>& meanwhile) {
  auto until = after(deadline);
  begin(kind, argument);
  for (auto looked = Clock::now(); !acknowledged();) {
    until += absence(looked);
    if (meanwhile) meanwhile();
    if (Clock::now() >= until)
      throw Timeout(-1, text("worker ", now_.worker, ": the server's inbox at UDP port ",
                             ntohs(servers_[0].port), " did not acknowledge within ", deadline,
                             " s; is UDP between the hosts allowed, is the server alive?"));
    wait(std::min(due_, until));
  }
  return now_.sequence;
}

void InboxClient::wait(Clock::time_point until) {
  if (simulated_) return simulated_->wait(until);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  pollfd p{socket_.get(), POLLIN, 0};
  poll(&p, 1, int(std::max<int64_t>(1, left.count())));
}

}  // namespace skein::comm
