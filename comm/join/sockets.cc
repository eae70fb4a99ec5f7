// Sockets: thin, checked wrappers of the system calls, no policy.
#include "comm/join/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "comm/join/congestion.h"
#include "comm/join/interfaces.h"

namespace skein::comm {
namespace {

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return int(std::max<int64_t>(0, std::min<int64_t>(left + 1, 1 << 30)));
}
bool ready(int fd, short events, Clock::time_point deadline) {
  pollfd p{fd, events, 0};
  for (;;) {
    const int n = poll(&p, 1, milliseconds_until(deadline));
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}
socklen_t unix_name(const std::string& name, sockaddr_un& a) {
  a = {};
  a.sun_family = AF_UNIX;
  CHECK(name.size() + 1 < sizeof a.sun_path, "socket name too long:", name);
  std::memcpy(a.sun_path + 1, name.data(), name.size());  // a leading zero byte: the abstract name space
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

}  // namespace

Fd& Fd::operator=(Fd&& o) noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = o.release();
  return *this;
}
Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

void fail_system(const std::string& what) { throw Error(text(what, ": ", std::strerror(errno))); }

std::string random_bytes(int n) {
  std::string s(size_t(n), 0);
  randombytes_buf(s.data(), s.size());
  return s;
}
std::string hex(const std::string& bytes) {
  static const char* digits = "0123456789abcdef";
  std::string s;
  for (unsigned char c : bytes) s += {digits[c >> 4], digits[c & 15]};
  return s;
}
std::string unhex(const std::string& digits) {
  std::string bytes(digits.size() / 2, 0);
  size_t n = 0;
  if (digits.size() % 2 != 0 ||
      sodium_hex2bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), digits.data(),
                     digits.size(), nullptr, &n, nullptr) != 0 ||
      n != bytes.size())
    throw Error("not pairs of hexadecimal digits");  // which ones may be a secret
  return bytes;
}

std::string host_identity() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string boot;
  in >> boot;
  struct stat net {};
  if (stat("/proc/self/ns/net", &net) != 0) fail_system("stat /proc/self/ns/net");
  return text(boot, '/', net.st_ino, '/', geteuid());
}

Fd listen_unix(const std::string& name, int backlog) {
  Fd s(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un a;
  const socklen_t n = unix_name(name, a);
  if (!s || bind(s.get(), reinterpret_cast<sockaddr*>(&a), n) != 0 || listen(s.get(), backlog) != 0)
    fail_system("listening on a unix socket");
  return s;
}
Fd connect_unix(const std::string& name) {
  Fd s(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un a;
  const socklen_t n = unix_name(name, a);
  if (!s || connect(s.get(), reinterpret_cast<sockaddr*>(&a), n) != 0)
    fail_system("connecting to a process of this host");
  return s;
}

namespace {

// Calls open(address) for one port after the other, until it succeeds. Jobs that share a range begin at
// different places in it. Returns the port, as the kernel knows it.
template <class Open>
int first_free(const std::string& address, PortRange ports, Open open) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  if (!address.empty() && inet_pton(AF_INET, address.c_str(), &a.sin_addr) != 1)
    throw Error(text("'", address, "' is no address to listen at"));
  const int count = ports.last - ports.first + 1;
  const int begin = int(randombytes_uniform(uint32_t(count)));
  for (int i = 0; i < count; ++i) {
    a.sin_port = htons(uint16_t(ports.first + (begin + i) % count));
    if (const int port = open(a); port > 0) return port;
    if (errno != EADDRINUSE) fail_system(text("listening at port ", ntohs(a.sin_port)));
  }
  throw Error(count == 1 ? text("port ", ports.first, " is in use on this host")
                         : text("--port-range ", ports.first, '-', ports.last,
                                ": all these ports are in use on this host"));
}

// 0: errno says why not.
int bind_at(const Fd& s, sockaddr_in a) {
  socklen_t n = sizeof a;
  if (!s || bind(s.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 ||
      getsockname(s.get(), reinterpret_cast<sockaddr*>(&a), &n) != 0)
    return 0;
  return ntohs(a.sin_port);
}

}  // namespace

Fd listen_tcp(const std::string& address, PortRange ports, int& port) {
  Fd s;
  port = first_free(address, ports, [&](const sockaddr_in& a) {
    s = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!s) return 0;  // before anything changes errno
    const int one = 1;
    setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    suit_bursts(s);
    const int bound = bind_at(s, a);
    return bound > 0 && listen(s.get(), 1024) == 0 ? bound : 0;
  });
  return s;
}

int bind_to(const Fd& s, const std::string& address, PortRange ports) {
  return first_free(address, ports, [&](const sockaddr_in& a) { return bind_at(s, a); });
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> outward, inward, loop;
  for (const Interface& i : interfaces())
    (i.loopback ? loop : i.inward ? inward : outward).push_back(i.address);
  outward.insert(outward.end(), inward.begin(), inward.end());
  outward.insert(outward.end(), loop.begin(), loop.end());
  return outward;
}

bool leads_back(const std::string& address) {
  if (address.starts_with("127.")) return true;
  for (const Interface& i : interfaces())
    if (i.inward && i.address == address) return true;
  return false;
}

namespace {

// The connection, or why there is none: an errno, EINVAL if the address is none.
std::pair<Fd, int> try_to_connect(const std::string& address, int port, Clock::time_point deadline) {
  Fd s(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s) fail_system("making a TCP socket");
  suit_bursts(s);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(uint16_t(port));
  if (inet_pton(AF_INET, address.c_str(), &a.sin_addr) != 1) return {Fd(), EINVAL};
  if (connect(s.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 && errno != EINPROGRESS)
    return {Fd(), errno};
  int error = 0;
  socklen_t n = sizeof error;
  if (!ready(s.get(), POLLOUT, deadline)) return {Fd(), ETIMEDOUT};
  if (getsockopt(s.get(), SOL_SOCKET, SO_ERROR, &error, &n) != 0) error = errno;
  if (error != 0) return {Fd(), error};
  fcntl(s.get(), F_SETFL, fcntl(s.get(), F_GETFL) & ~O_NONBLOCK);
  send_promptly(s);
  return {std::move(s), 0};
}

}  // namespace

Fd connect_tcp(const std::vector<std::string>& addresses, int port, Clock::time_point deadline) {
  const auto each = (deadline - Clock::now()) / int64_t(std::max<size_t>(1, addresses.size()));
  for (const std::string& address : addresses)
    if (auto [s, error] = try_to_connect(address, port, Clock::now() + each); s) return std::move(s);
  return {};
}

std::optional<bool> listens(const std::string& address, int port, Clock::time_point deadline) {
  const auto [s, error] = try_to_connect(address, port, deadline);
  if (s) return true;
  return error == ECONNREFUSED ? std::optional(false) : std::nullopt;
}

bool same_user(const Fd& s) {
  ucred who{};
  socklen_t n = sizeof who;
  return getsockopt(s.get(), SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid();
}

bool write_all(const Fd& s, const std::string& bytes, Clock::time_point deadline) {
  for (size_t at = 0; at < bytes.size();) {
    if (!ready(s.get(), POLLOUT, deadline)) return false;
    // A blocking send would return when all is queued, however late.
    const ssize_t n = ::send(s.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (n > 0) at += size_t(n);
  }
  return true;
}

bool read_all(const Fd& s, std::string& bytes, size_t n, Clock::time_point deadline) {
  bytes.resize(n);
  for (size_t at = 0; at < n;) {
    if (!ready(s.get(), POLLIN, deadline)) return false;
    const ssize_t got = recv(s.get(), bytes.data() + at, n - at, 0);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return false;
    if (got > 0) at += size_t(got);
  }
  return true;
}

namespace {
// A byte, with room for a descriptor beside it.
struct WithFd {
  explicit WithFd(char c) : byte(c) {
    m.msg_iov = &data, m.msg_iovlen = 1;
    m.msg_control = control, m.msg_controllen = sizeof control;
  }
  char byte;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr m{};
};
}  // namespace

bool send_fd(const Fd& socket, int fd) {
  WithFd sent('F');
  cmsghdr* c = CMSG_FIRSTHDR(&sent.m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  return sendmsg(socket.get(), &sent.m, MSG_NOSIGNAL) == 1;
}

Fd receive_fd(const Fd& socket, Clock::time_point deadline) {
  if (!ready(socket.get(), POLLIN, deadline)) return {};
  WithFd received(0);
  if (recvmsg(socket.get(), &received.m, MSG_CMSG_CLOEXEC) != 1 || received.byte != 'F') return {};
  const cmsghdr* c = CMSG_FIRSTHDR(&received.m);
  if (!c || c->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
  return Fd(fd);
}

void send_promptly(const Fd& s) {
  const int one = 1;
  setsockopt(s.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}
void set_nonblocking(const Fd& s) { fcntl(s.get(), F_SETFL, fcntl(s.get(), F_GETFL) | O_NONBLOCK); }

}  // namespace skein::comm
