// Sends reports through the inherited socket.
#include "apps/launch/superior.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cstdlib>

#include "apps/base/environment.h"

namespace skein::apps {
namespace {

// A launcher that does not read is stopped or gone, and the worker need not wait for it.
void report(const std::string& words) {
  static const comm::Fd socket = [] {
    const auto fd = number(kReportsVariable);
    if (!fd) return comm::Fd();
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    return comm::Fd(*fd);
  }();
  if (socket && words.size() <= kLongestReport)
    (void)!send(socket.get(), words.data(), words.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

void report_membership(const std::string& place) { report(kMember + place); }
void report_leaving() { report(kLeaving); }

}  // namespace skein::apps
