// AES-256-GCM gives published results, and those of another library.
#include "comm/seal/aes_gcm.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <random>
#include <string>
#include <vector>

namespace skein::comm {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes from_hex(const std::string& digits) {
  Bytes all;
  for (size_t i = 0; i < digits.size(); i += 2)
    all.push_back((unsigned char)std::stoi(digits.substr(i, 2), nullptr, 16));
  return all;
}

// What is sealed, with the tag behind it.
Bytes sealed(const Bytes& key, const Bytes& nonce, Bytes hidden, const Bytes& shown) {
  AesKey k;
  expand(key.data(), k);
  const size_t n = hidden.size();
  hidden.resize(n + 16);
  aes_seal(k, nonce.data(), {hidden.data(), n}, shown, hidden.data(), hidden.data() + n);
  return hidden;
}

// McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 13, 14 and 16.
TEST(AesGcm, GivesThePublishedResults) {
  if (!has_aes()) GTEST_SKIP() << "AES is not computed here";
  const Bytes zeros(32), none, nonce(12);
  EXPECT_EQ(sealed(zeros, nonce, none, none), from_hex("530f8afbc74536b9a963b4f1c4cb738b"));
  EXPECT_EQ(sealed(zeros, nonce, Bytes(16), none),
            from_hex("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"));
  const Bytes key = from_hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  EXPECT_EQ(
      sealed(key, from_hex("cafebabefacedbaddecaf888"),
             from_hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0"
                      "e2449a6b525b16aedf5aa0de657ba637b39"),
             from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2")),
      from_hex("522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056"
               "828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b"));
}

TEST(AesGcm, AgreesWithLibsodium) {
  if (!has_aes() || sodium_init() < 0 || !crypto_aead_aes256gcm_is_available())
    GTEST_SKIP() << "not both compute AES here";
  std::mt19937 numbers(7);
  const auto random = [&](size_t n) {
    Bytes all(n);
    for (auto& b : all) b = (unsigned char)numbers();
    return all;
  };
  for (const size_t hidden : {0, 1, 15, 16, 17, 255, 256, 4097, (1 << 20) + 5})
    for (const size_t shown : {0, 1, 16, 127, 4096, (1 << 20) + 5}) {
      const Bytes key = random(32), nonce = random(12), m = random(hidden), beside = random(shown);
      Bytes theirs(hidden + 16);
      crypto_aead_aes256gcm_encrypt_detached(theirs.data(), theirs.data() + hidden, nullptr, m.data(), hidden,
                                             beside.data(), shown, nullptr, nonce.data(), key.data());
      Bytes ours = sealed(key, nonce, m, beside);
      ASSERT_TRUE(ours == theirs) << hidden << ' ' << shown;
      AesKey k;
      expand(key.data(), k);
      ASSERT_TRUE(aes_open(k, nonce.data(), {ours.data(), hidden}, beside, ours.data() + hidden));
      ours.resize(hidden);
      ASSERT_TRUE(ours == m) << hidden << ' ' << shown;
    }
}

TEST(AesGcm, LeavesNothingOfWhatWasForged) {
  if (!has_aes()) GTEST_SKIP() << "AES is not computed here";
  const Bytes key(32, 3), nonce(12), m(1000, 5), beside(20, 6);
  AesKey k;
  expand(key.data(), k);
  Bytes forged = sealed(key, nonce, m, beside);
  ++forged[500];
  EXPECT_FALSE(aes_open(k, nonce.data(), {forged.data(), m.size()}, beside, forged.data() + m.size()));
  forged.resize(m.size());
  EXPECT_EQ(forged, Bytes(m.size()));
}

}  // namespace
}  // namespace skein::comm
