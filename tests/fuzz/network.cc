// What comes over the network before and after two ranks have greeted each other.
#include <sodium.h>
#include <sys/socket.h>

#include <cstring>
#include <sstream>

#include "comm/join/choose_network.h"
#include "comm/join/rendezvous.h"
#include "comm/seal/greeting.h"
#include "comm/tcp/inflow.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

const comm::Secret kKey(std::string(comm::kJobKeyBytes, 'k'));
const std::string kSalt(comm::kSaltBytes, 's');

constexpr int64_t kMost = 1 << 22;  // bytes of a message

const comm::Secret kSession(std::string(comm::kCipherKeyBytes, 'c'));

comm::Credentials credentials(comm::Rank me) { return {.key = kKey, .me = me, .size = 2}; }

// The proof of a hello, as docs/wire_format.md says.
std::string proof_of(const std::string& transcript) {
  const std::string words = std::string("skein hello") + '\0' + transcript;
  std::string proof(comm::kProofBytes, 0);
  crypto_generichash(reinterpret_cast<unsigned char*>(proof.data()), proof.size(),
                     reinterpret_cast<const unsigned char*>(words.data()), words.size(), kKey.data(),
                     kKey.size());
  return proof;
}

// Bytes as a peer writes them: what it seals, and what an attacker puts in between.
struct Wire {
  comm::Cipher seal{comm::CipherKind::kChaCha20Poly1305, kSession, true};
  std::string bytes;
  void add(std::string part) {
    std::string sealed(part.size() + comm::kTagBytes, 0);
    seal.seal(part.data(), part.size(), sealed.data(), sealed.data() + part.size());
    bytes += sealed;
  }
};

struct Pair {
  comm::Fd near, far;
  Pair() {
    int fds[2];
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    near = comm::Fd(fds[0]), far = comm::Fd(fds[1]);
  }
};

}  // namespace

// The first byte says how much of the hello is right.
void caller(Input in) {
  const uint8_t how = in.byte();
  std::string said = in.rest();
  if (how & 1) said.resize(comm::kHelloBytes);
  const bool whole = said.size() == comm::kHelloBytes;
  if (how & 2 && whole) {
    const comm::Hello right;
    std::memcpy(said.data(), &right, offsetof(comm::Hello, purpose));
  }
  const bool proved = how & 4 && whole;
  const std::string hello = said.substr(0, std::min(said.size(), sizeof(comm::Hello)));
  if (proved) said = hello + proof_of(kSalt + hello);
  const auto reply = comm::reply_to(said, kSalt, credentials(0));
  require(!reply || proved, "a caller without the key was let in");
  require(!reply || reply->hello.to == 0, "a caller of another rank was let in");
}

void answer(Input in) {
  comm::Call call(credentials(1), 0, comm::Purpose::kMeeting);
  const std::string said = call.hello(kSalt);
  const auto reply = comm::reply_to(said, kSalt, credentials(0));
  require(reply.has_value(), "a rank of the job was not let in");
  std::string words = in.byte() & 1 ? reply->words : "";
  const size_t at = in.byte();
  const std::string other = in.rest();
  if (at <= words.size()) words.replace(at, other.size(), other);
  require(!call.conclude(words) || words == reply->words, "an answer without the key was believed");
}

void table(Input in) {
  const int ranks = 1 + in.byte() % 4;
  const std::string bytes = in.rest();
  may_refuse([&] {
    size_t all = 0;
    for (const std::string& s : comm::read_table(bytes, ranks)) all += s.size() + sizeof(uint64_t);
    require(all == bytes.size(), "a table of another size than its strings");
  });
}

// A line for each worker; what is measured follows a byte of 1.
void networks(Input in) {
  const std::string all = in.rest();
  const size_t end = std::min(all.find('\1'), all.size());
  std::istringstream lines(all.substr(0, end)), rates(all.substr(std::min(end + 1, all.size())));
  may_refuse([&] {
    std::vector<std::vector<comm::Candidate>> hosts;
    for (std::string words; hosts.size() < 5 && std::getline(lines, words);) {
      const auto card = comm::NetworkCard::read(words);
      require(comm::NetworkCard::read(card.write()).write() == card.write(),
              "a card reads back as another one");
      hosts.push_back(card.candidates);
      for (comm::Candidate& c : hosts.back()) rates >> c.measured;
    }
    if (hosts.empty()) return;
    const std::vector<int> chosen = comm::fastest(hosts);
    require(chosen.size() == hosts.size(), "not every host has a network, or none");
    for (size_t h = 0; h < hosts.size(); ++h)
      require(chosen[h] >= -1 && chosen[h] < int(hosts[h].size()), "a network that there is not");
  });
}

// Messages of a member that may say anything. `changed`: an attacker has changed a byte of the last one.
void inflow(Input in) {
  may_refuse([&] {
    Wire wire;
    comm::Mailbox box(0, 4, 1 << 22);
    comm::Inflow flow(1, comm::Cipher(comm::CipherKind::kChaCha20Poly1305, kSession, true), box);
    const uint8_t how = in.byte();
    const bool changed = how & 1;
    for (int n = 0; in.left() > 0 && n < 8; ++n) {
      auto h = in.number<comm::Header>();
      h.magic = comm::Header::kMagic, h.version = comm::Header::kVersion, h.epoch = 1;
      if (how & 2)
        h.from = 1, h.kind = comm::Kind(uint16_t(h.kind) % 6), h.pieces = 1, h.piece = 0,
        h.codec = h.dtype = uint8_t(kU8);
      if (how & 4) h.bytes &= 1023;
      if (h.bytes > kMost) h.bytes %= kMost;  // a member is believed up to the size of the memory
      const std::string payload = in.some(how & 4 ? size_t(h.bytes) : in.byte());
      wire.add({reinterpret_cast<const char*>(&h), sizeof h});
      if (!payload.empty()) wire.add(payload);
    }
    if (changed && !wire.bytes.empty())
      wire.bytes[wire.bytes.size() - 1 - how % std::min<size_t>(wire.bytes.size(), 80)] ^= 4;
    const Pair pair;
    CHECK(::send(pair.far.get(), wire.bytes.data(), wire.bytes.size(), MSG_NOSIGNAL) ==
          ssize_t(wire.bytes.size()));
    ::shutdown(pair.far.get(), SHUT_WR);
    bool open = true;
    for (int i = 0; open && i < 100; ++i) {
      open = flow.read(pair.near);
      flow.goodbye = false, flow.refusal.clear();
    }
    require(!changed || wire.bytes.empty() || open || !flow.why.empty(), "a changed message was believed");
    (void)box.poll({0, comm::kAnyone, 0, comm::kAnyStep});
  });
}

}  // namespace skein::fuzz
