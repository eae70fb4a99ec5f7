// Secret: libsodium's guarded memory, shared by all copies.
#include "comm/secret.h"

#ifdef __AVX__
#include <immintrin.h>
#endif
#include <sodium.h>

#include <cstring>

#include "engine/base.h"

namespace skein::comm {

void* secret_memory(size_t n) {
  void* const at = sodium_init() < 0 ? nullptr : sodium_malloc(n);
  if (!at) throw Error(text("there is no memory for a secret of ", n, " bytes; does ulimit -v forbid it?"));
  return at;
}
void free_secret_memory(void* at) noexcept { sodium_free(at); }

Secret Secret::made(size_t n, const std::function<void(unsigned char*)>& fill) {
  Secret s;
  s.bytes_.reset(static_cast<unsigned char*>(secret_memory(n)), free_secret_memory);
  s.size_ = n;
  fill(s.bytes_.get());
  sodium_mprotect_readonly(s.bytes_.get());
  return s;
}

Secret::Secret(const std::string& bytes) {
  if (!bytes.empty())
    *this = made(bytes.size(), [&](auto* to) { std::memcpy(to, bytes.data(), bytes.size()); });
}

Secret Secret::random(size_t n) {
  return made(n, [&](auto* to) { randombytes_buf(to, n); });
}

Secret Secret::from_hex(const char* digits, size_t n) {
  return made(n / 2, [&](auto* to) {
    size_t got = 0;
    if (n % 2 != 0 || sodium_hex2bin(to, n / 2, digits, n, nullptr, &got, nullptr) != 0 || got != n / 2)
      throw Error("not pairs of hexadecimal digits");
  });
}

std::string Secret::hex() const {
  std::string digits(2 * size_ + 1, 0);
  sodium_bin2hex(digits.data(), digits.size(), data(), size_);
  digits.pop_back();
  return digits;
}

void wipe(void* at, size_t n) { sodium_memzero(at, n); }

void* (*volatile copy_at_run_time)(void*, const void*, size_t) = std::memcpy;

// What stays in vector registers is saved to the stack when a function of a library is called for the first
// time. Copying clears those that copies use, be they other ones.
void wipe_stack() {
  const unsigned char from[256] = {};
  unsigned char to[sizeof from];
  for (size_t n = 32; n <= sizeof from; n *= 2) copy_at_run_time(to, from, n);
#ifdef __AVX__
  _mm256_zeroall();
#endif
  sodium_stackzero(4096);
}
void wipe(std::string& s) {
  s.resize(s.capacity());
  wipe(s.data(), s.size());
  s.clear();
}

}  // namespace skein::comm
