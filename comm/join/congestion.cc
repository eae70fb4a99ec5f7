// Congestion control: what the kernel would use is what a new socket has.
#include "comm/join/congestion.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

namespace skein::comm {
namespace {

std::string control_of(const Fd& s) {
  char name[16] = {};  // the kernel's TCP_CA_NAME_MAX
  socklen_t n = sizeof name;
  return s && getsockopt(s.get(), IPPROTO_TCP, TCP_CONGESTION, name, &n) == 0
             ? std::string(name, strnlen(name, n))
             : std::string();
}

bool use(const Fd& s, const std::string& control) {
  return setsockopt(s.get(), IPPROTO_TCP, TCP_CONGESTION, control.data(), socklen_t(control.size())) == 0;
}

}  // namespace

void suit_bursts(const Fd& s) {
  if (control_of(s) == "bbr" && !use(s, "cubic")) use(s, "reno");
}

void suit_path(const Fd& s, std::chrono::microseconds from) {
  tcp_info known{};
  socklen_t n = sizeof known;
  if (getsockopt(s.get(), IPPROTO_TCP, TCP_INFO, &known, &n) != 0 ||
      std::chrono::microseconds(known.tcpi_min_rtt) < from)
    return;
  const std::string kernels = control_of(Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  if (kernels == "bbr") use(s, kernels);
}

}  // namespace skein::comm
