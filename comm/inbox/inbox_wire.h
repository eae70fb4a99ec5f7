// What travels between an inbox and its workers: one datagram a request, and its acknowledgement.
// docs/inbox.md.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/join/sockets.h"

namespace skein::comm {

// 48 bytes, little endian.
struct Datagram {
  static constexpr uint32_t kMagic = 0x494E4B53;  // "SKNI"
  static constexpr uint16_t kVersion = 1;
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t kind = 0;     // what is asked for, below kAcknowledged
  uint64_t job = 0;      // of the invitation
  int32_t worker = 0;    // who asks
  int32_t argument = 0;  // a number that goes with the kind
  int64_t sequence = 0;  // rises with every request of a worker
  uint8_t mac[16] = {};  // keyed BLAKE2b of the 32 bytes before
};
static_assert(sizeof(Datagram) == 48, "a datagram is 48 bytes on the wire");

inline constexpr uint16_t kAcknowledged = 0x8000;  // added to the kind of a request that the inbox has

// Where an inbox is. It is told to workers over a way they trust already, a communicator.
struct Invitation {
  std::string salt;  // of this inbox, so that nothing said to another one is believed
  int port = 0;
  std::vector<std::string> addresses;  // candidates, numeric

  std::string words() const;
  static Invitation read(const std::string& words);  // Error: these are none
};

// Signs and checks what belongs to one inbox of one job. Thread-safe.
class Seal {
 public:
  Seal(const std::string& job_key, const std::string& salt);  // the key may be empty: then anyone can forge
  void sign(Datagram&) const;                                 // job and mac
  bool genuine(const Datagram&) const;
  uint64_t job() const { return job_; }

 private:
  std::string key_;
  uint64_t job_ = 0;
};

Fd udp_socket();  // closes on exec

}  // namespace skein::comm
