// Greeting: how two ranks of a job prove to each other that they hold its key, and agree about keys
// of their own.
//
//   called    a salt of 32 bytes
//   caller    a Hello, with the caller's salt, and its tag
//   called    an Answer, which settles the cipher, and its tag
//
// Tags are BLAKE2b-256 of all that was said before, keyed with the job's key. Two session keys, one per
// direction, follow from the same words. Both salts are random for every connection, so a recorded greeting
// is useless and no key is ever used twice. Only bytes are handled here; sockets are in comm/join/line.h.
#pragma once
#include <optional>
#include <string>

#include "comm/membership/membership.h"
#include "comm/seal/cipher.h"
#include "comm/secret.h"

namespace skein::comm {

inline constexpr size_t kJobKeyBytes = 32;
inline constexpr size_t kSaltBytes = 32;
inline constexpr size_t kProofBytes = 32;

// What a connection is for. An end that expects another purpose refuses it.
enum class Purpose : uint16_t {
  kMeeting = 1,
  kTrial = 2,
  kHeartbeats = 3,
  kMessages = 4,
  kMemory = 5,
  kJoin = 6
};

// What a rank knows of itself and its job.
struct Credentials {
  Secret key;  // kJobKeyBytes
  Rank me = 0;
  int size = 1;
  uint32_t epoch = 0;  // of the membership
  bool hides = true;   // messages are to be encrypted; one of two ends is enough
};

// Little endian, as all that is sent.
struct Hello {
  static constexpr uint32_t kMagic = 0x5A444B53;  // "SKDZ"
  static constexpr uint16_t kVersion = 2;
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Purpose purpose = Purpose::kMeeting;
  Rank from = 0, to = 0;
  int32_t size = 1;
  uint32_t epoch = 0;
  uint8_t aes = 0;    // whether the caller's processor computes it
  uint8_t hides = 1;  // Credentials::hides
  uint8_t unused[6] = {};
  char salt[kSaltBytes] = {};
};
static_assert(sizeof(Hello) == 64, "a hello is 64 bytes on the wire");
inline constexpr size_t kHelloBytes = sizeof(Hello) + kProofBytes;

struct Answer {
  CipherKind cipher = CipherKind::kChaCha20Poly1305;
  uint8_t hides = 1;
  uint8_t unused[6] = {};
};
static_assert(sizeof(Answer) == 8, "an answer is 8 bytes on the wire");
inline constexpr size_t kAnswerBytes = sizeof(Answer) + kProofBytes;

struct Session {
  Cipher out, in;
};

std::string random_salt();

// The called end's reply to what a caller said after `salt`. Empty: the caller is a stranger.
struct Reply {
  Hello hello;
  std::string words;
  Session session;
};
std::optional<Reply> reply_to(const std::string& said, const std::string& salt, const Credentials&);

// The purpose of a caller that has proved that it holds the key, even if it is refused for another reason,
// such as another epoch or rank.
std::optional<Purpose> proven_purpose(const std::string& said, const std::string& salt, const Secret& key);

// The caller's end.
class Call {
 public:
  Call(Credentials, Rank to, Purpose);
  std::string hello(const std::string& salt);  // after the called end's salt
  // Empty: the called end is a stranger, or not that rank.
  std::optional<Session> conclude(const std::string& answer) const;

 private:
  const Credentials mine_;
  Hello hello_;
  std::string transcript_;
};

}  // namespace skein::comm
