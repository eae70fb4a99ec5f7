// Cipher: AES-256-GCM and ChaCha20-Poly1305 (IETF), with a counter for nonces.
#include "comm/seal/cipher.h"

#include <sodium.h>

#include <cstring>

#include "comm/seal/aes_gcm.h"
#include "engine/base.h"

namespace skein::comm {

static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == kTagBytes &&
              crypto_aead_chacha20poly1305_ietf_KEYBYTES == kCipherKeyBytes &&
              crypto_aead_chacha20poly1305_ietf_NPUBBYTES == kNonceBytes);

struct Cipher::State {
  CipherKind kind;
  bool hides, broken = false;
  uint64_t next = 0;  // the number of the next message
  AesKey aes;
  uint8_t key[kCipherKeyBytes];

  struct Nonce {
    uint8_t bytes[kNonceBytes] = {};
  };
  Nonce take_nonce() {
    Nonce n;
    std::memcpy(n.bytes, &next, sizeof next);
    ++next;
    return n;
  }
};

const char* name_of(CipherKind k) {
  return k == CipherKind::kAes256Gcm ? "AES-256-GCM" : "ChaCha20-Poly1305";
}

void Cipher::Ends::operator()(State* s) const { free_secret_memory(s); }

Cipher::Cipher(CipherKind kind, const Secret& key, bool hides)
    : state_(new (secret_memory(sizeof(State))) State{}) {
  CHECK(key.size() == kCipherKeyBytes, key.size());
  CHECK(kind != CipherKind::kAes256Gcm || has_aes(), "AES is not computed here");
  state_->kind = kind, state_->hides = hides;
  std::memcpy(state_->key, key.data(), key.size());
  if (kind == CipherKind::kAes256Gcm) expand(state_->key, state_->aes);
  wipe_stack();
}
Cipher::~Cipher() = default;
Cipher::Cipher(Cipher&&) noexcept = default;
Cipher& Cipher::operator=(Cipher&&) noexcept = default;
CipherKind Cipher::kind() const { return state_->kind; }
bool Cipher::hides() const { return state_->hides; }

// What is not hidden is authenticated as additional data of an empty message.
void Cipher::seal(const void* from, size_t n, void* to, void* tag) {
  State& s = *state_;
  const State::Nonce nonce = s.take_nonce();
  if (!s.hides && n > 0 && to != from) std::memcpy(to, from, n);
  const auto* clear = static_cast<const unsigned char*>(from);
  auto* out = static_cast<unsigned char*>(to);
  auto* proof = static_cast<unsigned char*>(tag);
  const size_t hidden = s.hides ? n : 0, shown = n - hidden;
  if (s.kind == CipherKind::kAes256Gcm)
    aes_seal(s.aes, nonce.bytes, {clear, hidden}, {clear, shown}, out, proof);
  else
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(out, proof, nullptr, clear, hidden, clear, shown,
                                                       nullptr, nonce.bytes, s.key);
  wipe_stack();
}

bool Cipher::open(void* bytes, size_t n, const void* tag) {
  State& s = *state_;
  if (s.broken) return false;
  const State::Nonce nonce = s.take_nonce();
  auto* at = static_cast<unsigned char*>(bytes);
  const auto* proof = static_cast<const unsigned char*>(tag);
  const size_t hidden = s.hides ? n : 0, shown = n - hidden;
  if (s.kind == CipherKind::kAes256Gcm)
    s.broken = !aes_open(s.aes, nonce.bytes, {at, hidden}, {at, shown}, proof);
  else
    s.broken = crypto_aead_chacha20poly1305_ietf_decrypt_detached(at, nullptr, at, hidden, proof, at, shown,
                                                                  nonce.bytes, s.key) != 0;
  wipe_stack();
  return !s.broken;
}

}  // namespace skein::comm
