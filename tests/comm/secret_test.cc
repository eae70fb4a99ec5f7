// A secret is in no memory that a core dump holds, also while ranks meet, greet and talk by it.
#include "comm/secret.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "comm/inbox/inbox.h"
#include "comm/inbox/inbox_client.h"
#include "comm/join/rendezvous.h"
#include "comm/join/sockets.h"
#include "comm/seal/aes_gcm.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

constexpr unsigned char kMask = 0x5A;

// Bytes to look for; this is not a copy of them.
class Needle {
 public:
  explicit Needle(const Secret& s) : masked_(s.data(), s.data() + s.size()) {
    for (auto& b : masked_) b ^= kMask;
    wipe_stack();
  }
  int copies_in(const unsigned char* at, size_t n) const {
    int found = 0;
    for (const auto* end = at + n;
         (at = static_cast<const unsigned char*>(std::memchr(at, masked_[0] ^ kMask, size_t(end - at))));
         ++at)
      found +=
          end - at >= std::ptrdiff_t(size()) &&
          std::equal(masked_.begin(), masked_.end(), at, [](auto m, auto b) { return m == (b ^ kMask); });
    return found;
  }
  size_t size() const { return masked_.size(); }

 private:
  std::vector<unsigned char> masked_;
};

struct Mapping {
  uintptr_t begin = 0, end = 0;
  bool is_dumped = false;
};

std::vector<Mapping> mappings() {
  std::vector<Mapping> all;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    unsigned long begin = 0, end = 0;
    char mode[8] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &begin, &end, mode) == 3)
      all.push_back({begin, end, mode[0] == 'r' && line.find("[v") == line.npos});
    if (line == "Rss:                   0 kB") all.back().is_dumped = false;
    if (line.starts_with("VmFlags:") && line.find(" dd") != line.npos) all.back().is_dumped = false;
  }
  return all;
}

bool is_dumped(const void* at) {
  for (const Mapping& m : mappings())
    if (m.begin <= uintptr_t(at) && uintptr_t(at) < m.end) return m.is_dumped;
  return false;
}

// How often the needle lies in what a core dump of this process would hold.
int copies_of(const Needle& needle) {
  constexpr size_t kBlock = 1 << 20;
  const Fd memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  std::vector<unsigned char> block(kBlock + needle.size() - 1);
  int found = 0;
  for (const Mapping& m : mappings()) {
    if (!m.is_dumped) continue;
    for (uintptr_t at = m.begin; at < m.end; at += kBlock) {
      const ssize_t n =
          pread(memory.get(), block.data(), std::min(block.size(), size_t(m.end - at)), off_t(at));
      if (n > 0) found += needle.copies_in(block.data(), size_t(n));
      wipe(block.data(), block.size());
    }
  }
  return found;
}

TEST(Secret, ItsPagesAreLeftOutOfCoreDumps) {
  const Secret s = Secret::random(32), same = s;
  const std::string word = "in clear";
  EXPECT_FALSE(is_dumped(s.data()));
  EXPECT_EQ(s.data(), same.data()) << "copies share it";
  EXPECT_TRUE(is_dumped(&word));
}

TEST(Secret, IsFoundWhereItWasCopied) {
  const Secret s = Secret::random(32);
  const Needle needle(s);
  EXPECT_EQ(copies_of(needle), 0);
  std::string copy(reinterpret_cast<const char*>(s.data()), s.size());
  EXPECT_GT(copies_of(needle), 0) << "and once more where it was read to";
  wipe(copy);
  EXPECT_EQ(copies_of(needle), 0);
}

TEST(Secret, ReadsItsDigitsAndNothingElse) {
  const std::string digits = "00ff10a7";
  EXPECT_EQ(Secret::from_hex(digits.data(), digits.size()).hex(), digits);
  for (const std::string wrong : {"0", "0g", "zz", "00 f"})
    EXPECT_THROW(Secret::from_hex(wrong.data(), wrong.size()), Error) << wrong;
  EXPECT_TRUE(Secret().empty());
  EXPECT_TRUE(Secret(std::string()).empty());
}

// Ranks that have met, connected, pushed and asked an inbox by this key, and do still.
TEST(Secret, NoCopyIsMadeWhileRanksMeetGreetAndTalk) {
  const Secret key = Secret::random(kJobKeyBytes);
  const Needle needle(key);
  int port = 0;
  Fd listener = listen_at(port, true);
  on_threads(2, [&](Rank r) {
    RendezvousOptions o;
    o.rank = r, o.size = 2, o.port = port, o.key = key, o.deadline = 20;
    if (r == 0) o.listener = std::move(listener);
    Rendezvous meeting(std::move(o));
    TransportOptions how;
    how.way = Way::kTcp, how.key = meeting.key(), how.deadline = 20;
    const auto transport = connect(meeting, how);
    Communicator c(*transport, {.deadline = 20, .key = meeting.key()});
    const Inbox inbox(inbox_beside(c, 2));
    InboxClient client(inbox.invitation(), c.options().key, r);
    client.ask(1);
    const Tensor x = ones(1000);
    c.all_reduce(x).wait();
    EXPECT_EQ(x.data<float>()[999], 2);
    EXPECT_EQ(r == 0 ? copies_of(needle) : 0, 0);
    c.barrier();
  });
  EXPECT_EQ(copies_of(needle), 0) << "afterwards";
}

// The keys of connections are not known outside, so a cipher is made with a key that is.
TEST(Secret, NoCopyIsMadeByACipher) {
  const Secret key = Secret::random(kCipherKeyBytes);
  const Needle needle(key);
  for (const CipherKind k : {CipherKind::kChaCha20Poly1305, CipherKind::kAes256Gcm}) {
    if (k == CipherKind::kAes256Gcm && !has_aes()) continue;
    Cipher c(k, key, true);
    std::string words(100, 'w'), tag(kTagBytes, 0);
    c.seal(words.data(), words.size(), words.data(), tag.data());
    EXPECT_EQ(copies_of(needle), 0) << name_of(k);
  }
}

}  // namespace
}  // namespace skein::comm
