// Reception: one poll over the listener and all callers that have not yet said enough.
#include "comm/join/reception.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace skein::comm {
namespace {

constexpr double kPatience = 10;      // seconds that a caller may take
constexpr size_t kMostUnknown = 512;  // callers heard at the same time, beside one for each rank

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
      most_(size_t(mine_.size) + kMostUnknown) {
  CHECK(mine_.key.size() == kJobKeyBytes, "a job key has", kJobKeyBytes, "bytes");
  set_nonblocking(listener_);
}

void Reception::refuse(size_t caller) {
  ++strangers_;
  callers_.erase(callers_.begin() + std::ptrdiff_t(caller));
}

// Without a free descriptor the oldest caller makes room for the next.
void Reception::admit_all() {
  for (size_t i = 0; i < most_; ++i) {  // those that are already here are to be heard now and then
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) {
      const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (full && callers_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (!full || callers_.empty()) return;
      refuse(0);
      continue;
    }
    if (welcome_ && !welcome_(socket)) {
      ++strangers_;
      continue;
    }
    send_promptly(socket);
    Caller c{std::move(socket), random_salt(), "", after(kPatience)};
    if (!send_at_once(c.socket, c.salt)) continue;
    callers_.push_back(std::move(c));
    if (callers_.size() > most_) refuse(0);
  }
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
      refuse(i);
      continue;
    }
    Guest g{reply->hello, {std::move(c.socket), std::move(reply->session.out), std::move(reply->session.in)}};
    callers_.erase(callers_.begin() + std::ptrdiff_t(i));
    return g;
  }
  return {};
}

std::optional<Reception::Guest> Reception::next(Clock::time_point until) {
  constexpr auto kNap =
      std::chrono::milliseconds(50);  // between looks for callers that have been silent too long
  for (;;) {
    admit_all();
    if (std::optional<Guest> g = hear()) return g;
    const Clock::duration left = until - Clock::now();
    if (left <= Clock::duration(0)) return {};
    std::vector<pollfd> waits = {{listener_.get(), POLLIN, 0}};
    for (const Caller& c : callers_) waits.push_back({c.socket.get(), POLLIN, 0});
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::min<Clock::duration>(left, kNap));
    poll(waits.data(), waits.size(), int(ms.count()));
  }
}

}  // namespace skein::comm
