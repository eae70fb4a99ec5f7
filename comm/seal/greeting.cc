// Greeting: tags and keys are hashes of a transcript, keyed with the job's key.
#include "comm/seal/greeting.h"

#include <sodium.h>

#include <cstring>

#include "comm/seal/aes_gcm.h"

namespace skein::comm {
namespace {

static_assert(kProofBytes == kCipherKeyBytes);
static_assert(crypto_generichash_BYTES == kProofBytes && crypto_generichash_KEYBYTES == kJobKeyBytes);

template <class T>
std::string bytes_of(const T& v) {
  return {reinterpret_cast<const char*>(&v), sizeof v};
}

// `use` keeps the hashes of one transcript apart.
void keyed_hash(unsigned char* to, const Secret& key, const char* use, const std::string& transcript) {
  const std::string words = std::string("skein ") + use + '\0' + transcript;
  crypto_generichash(to, kProofBytes, reinterpret_cast<const unsigned char*>(words.data()), words.size(),
                     key.data(), key.size());
  wipe_stack();
}
std::string proof(const Secret& key, const char* use, const std::string& transcript) {
  std::string out(kProofBytes, 0);
  keyed_hash(reinterpret_cast<unsigned char*>(out.data()), key, use, transcript);
  return out;
}
Secret key_for(const Secret& key, const char* use, const std::string& transcript) {
  return Secret::made(kCipherKeyBytes, [&](auto* to) { keyed_hash(to, key, use, transcript); });
}

bool proves(const std::string& tag, const std::string& expected) {
  return tag.size() == expected.size() && sodium_memcmp(tag.data(), expected.data(), tag.size()) == 0;
}

Session session(const Secret& key, const std::string& transcript, const Answer& a, bool called) {
  Cipher caller(a.cipher, key_for(key, "key of the caller", transcript), a.hides != 0);
  Cipher other(a.cipher, key_for(key, "key of the called", transcript), a.hides != 0);
  if (called) return {std::move(other), std::move(caller)};
  return {std::move(caller), std::move(other)};
}

}  // namespace

std::string random_salt() {
  if (sodium_init() < 0) throw Error("libsodium cannot be started");
  std::string salt(kSaltBytes, 0);
  randombytes_buf(salt.data(), salt.size());
  return salt;
}

std::optional<Purpose> proven_purpose(const std::string& said, const std::string& salt, const Secret& key) {
  if (said.size() != kHelloBytes) return {};
  if (!proves(said.substr(sizeof(Hello)), proof(key, "hello", salt + said.substr(0, sizeof(Hello)))))
    return {};
  Hello h;
  std::memcpy(&h, said.data(), sizeof h);
  return h.purpose;
}

std::optional<Reply> reply_to(const std::string& said, const std::string& salt, const Credentials& mine) {
  if (!proven_purpose(said, salt, mine.key)) return {};
  std::string transcript = salt + said.substr(0, sizeof(Hello));
  Hello h;
  std::memcpy(&h, said.data(), sizeof h);
  if (h.magic != Hello::kMagic || h.version != Hello::kVersion || h.to != mine.me || h.epoch != mine.epoch)
    return {};
  Answer a;
  a.cipher = h.aes && has_aes() ? CipherKind::kAes256Gcm : CipherKind::kChaCha20Poly1305;
  a.hides = h.hides || mine.hides;
  transcript += bytes_of(a);
  return Reply{h, bytes_of(a) + proof(mine.key, "answer", transcript),
               session(mine.key, transcript, a, true)};
}

Call::Call(Credentials mine, Rank to, Purpose p) : mine_(std::move(mine)) {
  CHECK(mine_.key.size() == kJobKeyBytes, "a job key has", kJobKeyBytes, "bytes");
  hello_.purpose = p;
  hello_.from = mine_.me, hello_.to = to;
  hello_.size = mine_.size, hello_.epoch = mine_.epoch;
  hello_.aes = has_aes(), hello_.hides = mine_.hides;
  const std::string salt = random_salt();
  std::memcpy(hello_.salt, salt.data(), salt.size());
}

std::string Call::hello(const std::string& salt) {
  transcript_ = salt + bytes_of(hello_);
  return bytes_of(hello_) + proof(mine_.key, "hello", transcript_);
}

std::optional<Session> Call::conclude(const std::string& answer) const {
  if (answer.size() != kAnswerBytes) return {};
  const std::string transcript = transcript_ + answer.substr(0, sizeof(Answer));
  if (!proves(answer.substr(sizeof(Answer)), proof(mine_.key, "answer", transcript))) return {};
  Answer a;
  std::memcpy(&a, answer.data(), sizeof a);
  if (a.cipher != CipherKind::kChaCha20Poly1305 && !(a.cipher == CipherKind::kAes256Gcm && has_aes()))
    return {};
  return session(mine_.key, transcript, a, false);
}

}  // namespace skein::comm
