// AES-256-GCM (NIST SP 800-38D), by the widest instructions that the processor has for it.
#pragma once
#include <cstddef>
#include <span>

namespace skein::comm {

inline constexpr size_t kNonceBytes = 12;

bool has_aes();  // whether this build and this processor compute it; the functions below need that

// Made by expand() from a key of 32 bytes; as secret as that.
struct AesKey {
  alignas(16) unsigned char bytes[1024];
};
void expand(const unsigned char* key, AesKey&);

// Encrypts `hidden` to `out`, which may be the same memory, and authenticates both by 16 bytes at `tag`.
void aes_seal(const AesKey&, const unsigned char* nonce, std::span<const unsigned char> hidden,
              std::span<const unsigned char> shown, unsigned char* out, unsigned char* tag);
// Decrypts in place. False: one of the two is not what was sealed so, and `hidden` is zeroed.
[[nodiscard]] bool aes_open(const AesKey&, const unsigned char* nonce, std::span<unsigned char> hidden,
                            std::span<const unsigned char> shown, const unsigned char* tag);

}  // namespace skein::comm
