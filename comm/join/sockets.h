// Sockets for connecting and watching: abstract unix ones between processes of one host, TCP between hosts.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "comm/membership/membership.h"
#include "comm/ports.h"

namespace skein::comm {

// A file descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& o) noexcept : fd_(o.release()) {}
  Fd& operator=(Fd&& o) noexcept;
  ~Fd();
  int get() const { return fd_; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

std::string random_bytes(int n);
std::string hex(const std::string& bytes);
// The inverse of hex(); throws Error on anything else.
std::string unhex(const std::string& digits);
// Names this kernel, network namespace and user: processes with the same can share memory
// and abstract sockets.
std::string host_identity();
// "what: strerror(errno)".
[[noreturn]] void fail_system(const std::string& what);

// All return sockets that close on exec; connections are blocking. Failures throw Error, which says
// what and where.
Fd listen_unix(const std::string& name, int backlog);  // name: in the abstract name space
Fd connect_unix(const std::string& name);
// At a numeric address of this host, empty: at all of them, and at a free port of the range, which
// `port` then holds.
Fd listen_tcp(const std::string& address, PortRange, int& port);
// Gives a socket that address and port. Returns the port; throws Error if all of them are taken.
int bind_to(const Fd& socket, const std::string& address, PortRange);
// Numeric addresses of this host: bridges of containers and virtual machines come after the
// others, loopback last.
std::vector<std::string> own_addresses();
// Whether an address leads to this host itself wherever it is used: loopback, or one of this host's bridges,
// which other hosts have under the same address.
bool leads_back(const std::string& address);
Fd connect_tcp(const std::vector<std::string>& addresses, int port,
               Clock::time_point deadline);  // the first that answers
// Whether a socket listens there; nothing if the host does not answer before the deadline.
std::optional<bool> listens(const std::string& address, int port, Clock::time_point deadline);
bool same_user(const Fd& unix_socket);

// All bytes or none; false on hang-up or deadline.
bool write_all(const Fd&, const std::string&, Clock::time_point deadline);
bool read_all(const Fd&, std::string& bytes, size_t n, Clock::time_point deadline);
bool send_fd(const Fd& socket, int fd);
Fd receive_fd(const Fd& socket, Clock::time_point deadline);  // empty: no descriptor came
void set_nonblocking(const Fd&);
void send_promptly(const Fd&);  // short messages do not wait for acknowledgements (TCP_NODELAY)

}  // namespace skein::comm
