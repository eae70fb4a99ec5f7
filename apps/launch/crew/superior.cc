// Sends reports through the inherited socket.
#include "apps/launch/crew/superior.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>

#include "apps/base/environment.h"

namespace skein::apps {
namespace {

constexpr int kAnswering = 100;  // milliseconds

const comm::Fd& launcher() {
  static const comm::Fd socket = [] {
    const auto fd = number(kReportsVariable);
    if (!fd) return comm::Fd();
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    return comm::Fd(*fd);
  }();
  return socket;
}

// A launcher that does not read is stopped or gone, and the worker need not wait for it.
void report(const std::string& words) {
  if (launcher() && words.size() <= kLongestReport)
    (void)!send(launcher().get(), words.data(), words.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

void report_membership(const std::string& place) { report(kMember + place); }
void report_leaving() { report(kLeaving); }

// Answers to earlier claims, which came too late, are skipped.
std::optional<std::string> claim_epoch(uint32_t epoch, const std::string& bytes) {
  const std::string about = text(kRegister, epoch, ' ');
  report(about + comm::hex(bytes));
  std::string words(kLongestReport, '\0');
  for (pollfd p{launcher().get(), POLLIN, 0}; launcher() && poll(&p, 1, kAnswering) > 0;) {
    const ssize_t n = recv(launcher().get(), words.data(), words.size(), MSG_DONTWAIT);
    if (n <= 0) return {};
    if (words.starts_with(about)) return comm::unhex(words.substr(about.size(), size_t(n) - about.size()));
  }
  return {};
}

}  // namespace skein::apps
