// Greeting: how a caller and rank 0 prove to each other that they hold the job's key.
#pragma once
#include <sodium.h>

#include <cstring>
#include <string>

#include "comm/join/sockets.h"

namespace skein::comm {

inline constexpr uint32_t kMagic = 0x5A444B53;  // "SKDZ"
inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kNonce = 16, kTag = 32;

// Rank 0 sends a challenge of kNonce bytes, the caller answers with a Hello and the tag of challenge and
// Hello, and rank 0 with the tag of the Hello's nonce and "welcome".
struct Hello {
  uint32_t magic, version, rank, size;
  char nonce[kNonce];
};
static_assert(sizeof(Hello) == 32);
inline constexpr size_t kHelloBytes = sizeof(Hello) + kTag;

inline std::string tag_of(const std::string& key, const std::string& bytes) {
  std::string tag(kTag, 0);
  const auto raw = [](const std::string& s) { return reinterpret_cast<const unsigned char*>(s.data()); };
  crypto_generichash(reinterpret_cast<unsigned char*>(tag.data()), kTag, raw(bytes), bytes.size(), raw(key),
                     key.size());
  return tag;
}
inline bool same(const std::string& a, const std::string& b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

template <class T>
std::string bytes_of(const T& v) {
  return {reinterpret_cast<const char*>(&v), sizeof v};
}

}  // namespace skein::comm
