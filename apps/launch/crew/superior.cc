// Sends reports through the inherited socket.
#include "apps/launch/crew/superior.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "apps/base/environment.h"
#include "engine/words/number.h"

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

std::string Claim::write() const { return text(kRegister, epoch, ' ', comm::hex(view)); }

std::optional<Claim> Claim::read(const std::string& words) {
  if (!words.starts_with(kRegister)) return {};
  const size_t begin = std::strlen(kRegister), end = std::min(words.find(' ', begin), words.size());
  const auto number = number_in<uint32_t>(words.substr(begin, end - begin));
  if (!number || end == words.size()) return {};
  try {
    return Claim{*number, comm::unhex(words.substr(end + 1))};
  } catch (const Error&) { return {}; }
}

// Answers to earlier claims, which came too late, are skipped.
std::optional<std::string> claim_epoch(uint32_t epoch, const std::string& bytes) {
  report(Claim{epoch, bytes}.write());
  std::string words(kLongestReport, '\0');
  for (pollfd p{launcher().get(), POLLIN, 0}; launcher() && poll(&p, 1, kAnswering) > 0;) {
    const ssize_t n = recv(launcher().get(), words.data(), words.size(), MSG_DONTWAIT);
    if (n <= 0) return {};
    if (const auto kept = Claim::read(words.substr(0, size_t(n))); kept && kept->epoch == epoch)
      return kept->view;
  }
  return {};
}

}  // namespace skein::apps
