// Cipher: authenticated encryption of one direction of one connection.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/secret.h"

namespace skein::comm {

inline constexpr size_t kTagBytes = 16;  // of the tag that proves what it goes with
inline constexpr size_t kCipherKeyBytes = 32;

enum class CipherKind : uint8_t { kChaCha20Poly1305 = 1, kAes256Gcm = 2 };  // as in a greeting
const char* name_of(CipherKind);

// Seals messages under the nonces 0, 1, 2, ...; its counterpart opens them in the same order. A message that
// was changed, repeated, left out or moved does not open. The key belongs to these two objects alone
// (greeting.h), so no key and nonce ever come twice. For one thread at a time.
class Cipher {
 public:
  // `hides`: messages are encrypted; else they stay readable and are only proved.
  Cipher(CipherKind, const Secret& key, bool hides);
  ~Cipher();
  Cipher(Cipher&&) noexcept;
  Cipher& operator=(Cipher&&) noexcept;

  // Writes n bytes to `to`, which may be `from`, and kTagBytes to `tag`.
  void seal(const void* from, size_t n, void* to, void* tag);
  // Restores n bytes in place. False: they are not the next message, and no later one will open either.
  [[nodiscard]] bool open(void* bytes, size_t n, const void* tag);
  CipherKind kind() const;
  bool hides() const;

 private:
  struct State;
  struct Ends {
    void operator()(State*) const;
  };
  std::unique_ptr<State, Ends> state_;  // in secret memory
};

}  // namespace skein::comm
