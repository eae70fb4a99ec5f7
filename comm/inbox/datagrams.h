// Datagrams: many small datagrams of one size in few system calls.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>

namespace skein::comm {

// Where the kernel can (Linux 4.18 and 5.0), what one peer sent in a row comes in one piece (UDP_GRO), and
// what goes to one peer in a row leaves in one piece (UDP_SEGMENT): on the wire these are datagrams like
// others, and elsewhere each travels alone. One thread.
class Datagrams {
 public:
  struct Arrived {
    const uint8_t* at = nullptr;  // null: longer than there is room for, by far
    size_t bytes = 0;
    const sockaddr_in* from = nullptr;
  };

  // For a UDP socket, which must outlive this, and datagrams of `bytes` or what is to be told apart from
  // them.
  Datagrams(int socket, size_t bytes);
  ~Datagrams();
  Datagrams(const Datagrams&) = delete;

  // What has come, in order of arrival; valid until the next call. `wait`: for the first one, as long as the
  // socket's SO_RCVTIMEO says. Empty: nothing, or an error of the network.
  std::span<const Arrived> receive(bool wait);

  // Copies `bytes` to be sent by flush(), which waits for nothing: what the kernel has no room for is lost.
  void add(const void* datagram, const sockaddr_in& to);
  void flush();

 private:
  struct Buffers;
  void take_apart(size_t message);
  void send(size_t messages);

  const int socket_;
  const size_t bytes_;
  bool together_ = false;  // UDP_SEGMENT works
  std::unique_ptr<Buffers> b_;
};

}  // namespace skein::comm
