// Signing datagrams, and writing and reading invitations.
#include "comm/inbox/inbox_wire.h"

#include <sodium.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <sstream>

#include "comm/ports.h"

namespace skein::comm {
namespace {

constexpr size_t kSigned = offsetof(Datagram, mac);

const unsigned char* raw(const std::string& s) { return reinterpret_cast<const unsigned char*>(s.data()); }

void digest(unsigned char* to, size_t bytes, const std::string& words, const Secret& key) {
  crypto_generichash(to, bytes, raw(words), words.size(), key.data(), key.size());
  wipe_stack();
}

}  // namespace

std::string Invitation::words() const {
  std::string s = "inbox " + hex(salt) + " " + std::to_string(port);
  for (const std::string& a : addresses) s += " " + a;
  return s;
}

Invitation Invitation::read(const std::string& words) {
  std::istringstream in(words);
  std::string title;
  Invitation i;
  if (!(in >> title >> i.salt >> i.port) || title != "inbox" || i.port < 1 || i.port > kLastPort ||
      i.salt.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Error("no invitation to an inbox: '" + words + "'");
  i.salt = unhex(i.salt);
  for (std::string a; in >> a;) i.addresses.push_back(a);
  return i;
}

Seal::Seal(const Secret& job_key, const std::string& salt) {
  if (sodium_init() < 0) throw Error("libsodium cannot be started");
  key_ = Secret::made(32, [&](auto* to) { digest(to, 32, "skein inbox key " + salt, job_key); });
  unsigned char job[16];
  digest(job, sizeof job, "skein inbox job", key_);
  std::memcpy(&job_, job, sizeof job_);
}

void Seal::sign(Datagram& d) const {
  d.job = job_;
  crypto_generichash(d.mac, sizeof d.mac, reinterpret_cast<const unsigned char*>(&d), kSigned, key_.data(),
                     key_.size());
  wipe_stack();
}

bool Seal::genuine(const Datagram& d) const {
  uint8_t mac[sizeof d.mac];
  crypto_generichash(mac, sizeof mac, reinterpret_cast<const unsigned char*>(&d), kSigned, key_.data(),
                     key_.size());
  wipe_stack();
  return sodium_memcmp(mac, d.mac, sizeof mac) == 0;
}

Verdict judge(const uint8_t* bytes, size_t n, const Seal& seal, int workers, Datagram& d) {
  if (!bytes || n != sizeof d) return Verdict::kLength;
  std::memcpy(&d, bytes, sizeof d);
  if (d.magic != Datagram::kMagic) return Verdict::kStranger;
  if (d.version != Datagram::kVersion) return Verdict::kVersion;
  if (d.job != seal.job()) return Verdict::kJob;
  if (!seal.genuine(d)) return Verdict::kForged;
  if (d.worker < 0 || d.worker >= workers || d.kind >= kAcknowledged) return Verdict::kWorker;
  return Verdict::kGenuine;
}

bool acknowledges(const uint8_t* bytes, size_t n, const Datagram& request, const Seal& seal) {
  Datagram d;
  if (n != sizeof d) return false;
  std::memcpy(&d, bytes, sizeof d);
  return d.sequence == request.sequence && d.kind == (request.kind | kAcknowledged) &&
         d.worker == request.worker && d.magic == Datagram::kMagic && d.job == seal.job() && seal.genuine(d);
}

Fd udp_socket() {
  Fd s(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!s) fail_system("making a UDP socket");
  return s;
}

}  // namespace skein::comm
