// What travels between an inbox and its workers: a datagram per request and its acknowledgement
// (docs/inbox.md).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/join/sockets.h"
#include "comm/secret.h"

namespace skein::comm {

// 48 bytes, little endian.
struct Datagram {
  static constexpr uint32_t kMagic = 0x494E4B53;  // "SKNI"
  static constexpr uint16_t kVersion = 1;
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t kind = 0;     // the kind of request, below kAcknowledged
  uint64_t job = 0;      // from the invitation
  int32_t worker = 0;    // the sender
  int32_t argument = 0;  // a number that goes with the kind
  int64_t sequence = 0;  // rises with every request of a worker
  uint8_t mac[16] = {};  // a keyed BLAKE2b of the 32 bytes before
};
static_assert(sizeof(Datagram) == 48, "a datagram is 48 bytes on the wire");

inline constexpr uint16_t kAcknowledged = 0x8000;  // added to the kind when the inbox acknowledges a request

// Where an inbox is. Workers learn it over their communicator, which they trust.
struct Invitation {
  std::string salt;  // this inbox's own, so that datagrams to another inbox are rejected
  int port = 0;
  std::vector<std::string> addresses;  // numeric; any of them may be the one that can be reached

  std::string words() const;
  static Invitation read(const std::string& words);  // throws Error if it is none
};

// Signs and checks the datagrams of one inbox of one job. Thread-safe.
class Seal {
 public:
  Seal(const Secret& job_key, const std::string& salt);  // with an empty key anyone can forge datagrams
  void sign(Datagram&) const;                            // fills in job and mac
  bool genuine(const Datagram&) const;
  uint64_t job() const { return job_; }

 private:
  Secret key_;
  uint64_t job_ = 0;
};

// What bytes from the network are to an inbox of so many workers.
enum class Verdict : uint8_t { kGenuine, kLength, kStranger, kVersion, kJob, kForged, kWorker };
Verdict judge(const uint8_t* bytes, size_t n, const Seal&, int workers, Datagram&);  // filled if genuine
// Whether the bytes of a datagram acknowledge this request.
bool acknowledges(const uint8_t* bytes, size_t n, const Datagram& request, const Seal&);

Fd udp_socket();  // closes on exec

}  // namespace skein::comm
