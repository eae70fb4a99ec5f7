// BLAKE2b by libsodium.
#include "apps/base/digest.h"

#include <sodium.h>

#include "engine/words/file.h"

namespace skein::apps {

struct Digest::State {
  crypto_generichash_state blake;
};

Digest::Digest() : state_(std::make_unique<State>()) {
  CHECK(sodium_init() >= 0, "libsodium does not start");
  crypto_generichash_init(&state_->blake, nullptr, 0, crypto_generichash_BYTES);
}
Digest::~Digest() = default;
void Digest::add(const void* data, size_t bytes) {
  crypto_generichash_update(&state_->blake, static_cast<const unsigned char*>(data), bytes);
}
std::string Digest::hex() {
  unsigned char sum[crypto_generichash_BYTES];
  crypto_generichash_final(&state_->blake, sum, sizeof sum);
  char digits[2 * sizeof sum + 1];
  return sodium_bin2hex(digits, sizeof digits, sum, sizeof sum);
}

std::string digest_of_file(const std::string& path) {
  Digest digest;
  read_pieces(path, [&](const char* data, size_t bytes) { digest.add(data, bytes); });
  return digest.hex();
}

}  // namespace skein::apps
