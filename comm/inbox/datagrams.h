// Datagrams: many small datagrams of one size with few system calls.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>

namespace skein::comm {

// If the kernel can (Linux 4.18 and 5.0), consecutive datagrams from one peer are received in one piece
// (UDP_GRO), and consecutive datagrams to one peer are sent in one piece (UDP_SEGMENT); on the wire they are
// ordinary datagrams. Otherwise each is handled alone. For one thread.
class Datagrams {
 public:
  struct Arrived {
    const uint8_t* at = nullptr;  // null: far longer than there is room for
    size_t bytes = 0;
    const sockaddr_in* from = nullptr;
  };

  // For a UDP socket, which must outlive this, and datagrams of `bytes`. Datagrams of other lengths are
  // received, too, and can be told apart.
  Datagrams(int socket, size_t bytes);
  ~Datagrams();
  Datagrams(const Datagrams&) = delete;

  // The datagrams that have come, in order of arrival; valid until the next call. `wait`: waits for the first
  // one, up to the socket's SO_RCVTIMEO. Empty: none came, or the network failed.
  std::span<const Arrived> receive(bool wait);

  // Copies `bytes`, which flush() sends. flush() never waits: datagrams for which the kernel has no
  // room are lost.
  void add(const void* datagram, const sockaddr_in& to);
  void flush();

 private:
  struct Buffers;
  void take_apart(size_t message);
  void send(size_t messages);

  const int socket_;
  const size_t bytes_;
  bool together_ = false;  // whether UDP_SEGMENT works
  std::unique_ptr<Buffers> b_;
};

}  // namespace skein::comm
