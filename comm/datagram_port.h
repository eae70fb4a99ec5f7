// DatagramPort: what a worker of a simulated world has in place of a UDP socket.
#pragma once
#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/clock.h"

namespace skein::comm {

// Datagrams may be lost, doubled, or overtake each other. Thread-safe within the world.
class DatagramPort {
 public:
  struct Arrived {
    std::vector<uint8_t> bytes;
    sockaddr_in from;
  };
  virtual ~DatagramPort() = default;
  virtual int number() const = 0;  // as that of a UDP port
  virtual void send(const void* datagram, size_t bytes, const sockaddr_in& to) = 0;
  virtual std::optional<Arrived> receive() = 0;    // never waits
  virtual void wait(Clock::time_point until) = 0;  // for a datagram, or for wake()
  virtual void wake() = 0;
};

}  // namespace skein::comm
