// Reception: one poll over the listener and all callers that have not yet said enough.
#include "comm/join/reception.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <thread>

namespace skein::comm {
namespace {

constexpr double kCallerPatience = 10;  // seconds that a caller may take
constexpr size_t kMostUnknown = 512;    // callers heard at the same time, beside one for each rank
constexpr size_t kAtOnce = 64;          // callers let in before those that are here are heard again
const std::string kNo(kAnswerBytes, 0);

// Half of the descriptors are for others.
size_t most_callers(int ranks) {
  rlimit files{};
  const size_t descriptors = getrlimit(RLIMIT_NOFILE, &files) == 0 ? size_t(files.rlim_cur) : kMostUnknown;
  return std::max<size_t>(8, std::min(size_t(ranks) + kMostUnknown, descriptors / 2));
}

// Receives without waiting what the caller has to say. False: it hung up.
bool read_some(const Fd& socket, std::string& said) {
  char buffer[kHelloBytes];
  const ssize_t n = recv(socket.get(), buffer, kHelloBytes - said.size(), MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
  if (n > 0) said.append(buffer, size_t(n));
  return true;
}

// So few bytes fit into the buffer of a new connection.
bool send_at_once(const Fd& socket, const std::string& words) {
  return send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == ssize_t(words.size());
}

}  // namespace

Reception::Reception(const Fd& listener, Credentials mine, Refusals::Counter& strangers,
                     std::function<bool(const Fd&)> welcome)
    : listener_(listener),
      mine_(std::move(mine)),
      strangers_(strangers),
      welcome_(std::move(welcome)),
      most_(most_callers(mine_.size)) {
  CHECK(mine_.key.size() == kJobKeyBytes, "a job key has", kJobKeyBytes, "bytes");
  set_nonblocking(listener_);
}

void Reception::refuse(size_t caller) {
  ++strangers_;
  callers_.erase(callers_.begin() + std::ptrdiff_t(caller));
}

// A flood from one host must not push out callers from another.
void Reception::make_room() {
  std::map<uint32_t, size_t> from;
  uint32_t crowd = callers_[0].address;
  for (const Caller& c : callers_)
    if (++from[c.address] > from[crowd]) crowd = c.address;
  const auto oldest =
      std::find_if(callers_.begin(), callers_.end(), [&](const Caller& c) { return c.address == crowd; });
  refuse(size_t(oldest - callers_.begin()));
}

void Reception::admit_all() {
  for (size_t i = 0; i < kAtOnce; ++i) {
    sockaddr_in from{};
    socklen_t n = sizeof from;
    Fd socket(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &n, SOCK_CLOEXEC));
    if (!socket) {
      const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (full && callers_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (!full || callers_.empty()) return;
      make_room();
      continue;
    }
    if (welcome_ && !welcome_(socket)) {
      ++strangers_;
      continue;
    }
    send_promptly(socket);
    const uint32_t address = from.sin_family == AF_INET ? from.sin_addr.s_addr : 0;
    Caller c{std::move(socket), address, random_salt(), "", after(kCallerPatience)};
    if (!send_at_once(c.socket, c.salt)) continue;
    callers_.push_back(std::move(c));
    if (callers_.size() > most_) make_room();
  }
}

// The meeting of an epoch and the door of a job are at one socket in turn: who comes too early is no
// stranger. Nor is who hangs up without a word, as members do who look whether another one lives.
bool Reception::is_stranger(const Caller& c, bool there) const {
  if (!there && c.said.empty()) return false;
  const std::optional<Purpose> wanted = proven_purpose(c.said, c.salt, mine_.key);
  return wanted != Purpose::kMeeting && wanted != Purpose::kJoin;
}

std::optional<Reception::Guest> Reception::hear() {
  for (size_t i = 0; i < callers_.size();) {
    Caller& c = callers_[i];
    const bool there = read_some(c.socket, c.said);
    if (there && c.said.size() < kHelloBytes && Clock::now() < c.until) {
      ++i;
      continue;
    }
    std::optional<Reply> reply;
    if (c.said.size() == kHelloBytes) reply = reply_to(c.said, c.salt, mine_);
    if (!reply || !send_at_once(c.socket, reply->words)) {
      if (is_stranger(c, there)) ++strangers_;
      if (there && !reply) (void)send_at_once(c.socket, kNo);
      callers_.erase(callers_.begin() + std::ptrdiff_t(i));
      continue;
    }
    Guest g{reply->hello, {std::move(c.socket), std::move(reply->session.out), std::move(reply->session.in)}};
    callers_.erase(callers_.begin() + std::ptrdiff_t(i));
    return g;
  }
  return {};
}

std::optional<Reception::Guest> Reception::next(Clock::time_point until, const Fd* bell) {
  constexpr std::chrono::milliseconds kNap(50);  // between looks for callers that have been silent too long
  for (;;) {
    admit_all();
    if (std::optional<Guest> g = hear()) return g;
    const Clock::duration left = until - Clock::now();
    if (left <= Clock::duration(0)) return {};
    std::vector<pollfd> waits = {{listener_.get(), POLLIN, 0}, {bell ? bell->get() : -1, POLLIN, 0}};
    for (const Caller& c : callers_) waits.push_back({c.socket.get(), POLLIN, 0});
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(
        callers_.empty() ? left : std::min<Clock::duration>(left, kNap));
    poll(waits.data(), waits.size(), int(ms.count()));
    if (waits[1].revents) return {};
  }
}

}  // namespace skein::comm
