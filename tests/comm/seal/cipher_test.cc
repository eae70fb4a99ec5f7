// What is sealed opens once, in order, unchanged, under its own key.
#include "comm/seal/cipher.h"

#include <gtest/gtest.h>

#include <optional>

#include "comm/seal/aes_gcm.h"
#include "tests/support/keys.h"
#include "tests/support/sealed.h"

namespace skein::comm {
namespace {

std::vector<CipherKind> kinds() {
  std::vector<CipherKind> all = {CipherKind::kChaCha20Poly1305};
  if (has_aes()) all.push_back(CipherKind::kAes256Gcm);
  return all;
}

struct Pair {
  explicit Pair(CipherKind k, bool hides = true, const Secret& key = kKey)
      : out(k, key, hides), in(k, key, hides) {}
  Cipher out, in;
};

TEST(Cipher, OpensWhatItsCounterpartHasSealed) {
  for (const CipherKind k : kinds())
    for (const bool hides : {true, false}) {
      Pair p(k, hides);
      for (const size_t n : {0, 1, 15, 16, 64, 1000, 1 << 20}) {
        const std::string m(n, char('a' + n % 20));
        const std::string s = sealed(p.out, m);
        EXPECT_EQ(s.substr(0, n) == m, !hides || n == 0) << name_of(k) << n;
        EXPECT_EQ(opened(p.in, s), m) << name_of(k) << n;
      }
    }
}

TEST(Cipher, RefusesEveryFlippedBit) {
  const std::string m = "forty bytes that must arrive as they are";
  for (const CipherKind k : kinds())
    for (const bool hides : {true, false})
      for (size_t bit = 0; bit < 8 * (m.size() + kTagBytes); ++bit) {
        Pair p(k, hides);
        std::string s = sealed(p.out, m);
        s[bit / 8] = char(s[bit / 8] ^ (1 << (bit % 8)));
        EXPECT_FALSE(opened(p.in, s)) << name_of(k) << bit;
      }
}

TEST(Cipher, RefusesWhatIsRepeatedLeftOutOrMovedAndAllThatFollows) {
  for (const CipherKind k : kinds()) {
    const std::vector<std::vector<int>> orders = {{0, 0}, {1, 0}, {0, 2}, {0, 1, 0}, {2}};
    for (const std::vector<int>& order : orders) {
      Pair p(k);
      std::vector<std::string> all;
      for (int i = 0; i < 4; ++i) all.push_back(sealed(p.out, std::string(8, char('0' + i))));
      std::optional<std::string> last;
      for (const int i : order) last = opened(p.in, all[size_t(i)]);
      EXPECT_FALSE(last) << name_of(k);
      for (const std::string& s : all)
        EXPECT_FALSE(opened(p.in, s)) << "the connection goes on after a forgery";
    }
  }
}

TEST(Cipher, RefusesAnotherKey) {
  for (const CipherKind k : kinds()) {
    Pair ours(k), others(k, true, kOther);
    EXPECT_FALSE(opened(ours.in, sealed(others.out, "a message")));
  }
}

}  // namespace
}  // namespace skein::comm
