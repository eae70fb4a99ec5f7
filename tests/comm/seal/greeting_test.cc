// Greetings let in only those with the key, and no two give the same session key.
#include "comm/seal/greeting.h"

#include <gtest/gtest.h>

#include <set>

#include "comm/seal/aes_gcm.h"
#include "tests/support/keys.h"
#include "tests/support/sealed.h"

namespace skein::comm {
namespace {

// One greeting between two ranks: both ends' sessions, in the order caller, called.
struct Greeting {
  std::string salt = random_salt(), hello, answer;
  std::optional<Session> caller, called;
  explicit Greeting(const Credentials& from, const Credentials& to, Purpose p = Purpose::kMessages) {
    Call call(from, to.me, p);
    hello = call.hello(salt);
    std::optional<Reply> reply = reply_to(hello, salt, to);
    if (!reply) return;
    answer = reply->words;
    called = std::move(reply->session);
    caller = call.conclude(answer);
  }
};
Credentials rank(Rank r, const Secret& key = kKey, uint32_t epoch = 0) {
  return {.key = key, .me = r, .size = 4, .epoch = epoch};
}

TEST(Greeting, GivesBothEndsAWayToSpeakInEachDirection) {
  Greeting g(rank(2), rank(1));
  ASSERT_TRUE(g.caller && g.called);
  EXPECT_EQ(opened(g.called->in, sealed(g.caller->out, "there")), "there");
  EXPECT_EQ(opened(g.caller->in, sealed(g.called->out, "back")), "back");
  EXPECT_EQ(g.caller->out.kind(), has_aes() ? CipherKind::kAes256Gcm : CipherKind::kChaCha20Poly1305);
}

// Under one key and nonce, zeros would be sealed alike.
TEST(Greeting, BringsNoKeyAndNonceTwice) {
  const std::string zeros(32, 0);
  std::set<std::string> seen;
  size_t all = 0;
  const auto speak = [&](Greeting&& g) {
    for (int i = 0; i < 4; ++i)
      for (Session* s : {&*g.caller, &*g.called}) seen.insert(sealed(s->out, zeros)), ++all;
  };
  for (int restart = 0; restart < 50; ++restart) {
    speak(Greeting(rank(1), rank(0)));
    speak(Greeting(rank(1), rank(0), Purpose::kHeartbeats));
    speak(Greeting(rank(2), rank(0)));
    speak(Greeting(rank(2), rank(1)));
    speak(Greeting(rank(1, kKey, 1), rank(0, kKey, 1)));
  }
  EXPECT_EQ(seen.size(), all);
}

// Even with equal salts the keys of other pairs, purposes, epochs and jobs differ: they follow from all
// that was said.
TEST(Greeting, DerivesItsKeysFromEveryByteThatWasSaid) {
  const std::string salt(kSaltBytes, 's');
  Call call(rank(1), 0, Purpose::kMessages);
  const std::string hello = call.hello(salt);
  std::optional<Reply> reply = reply_to(hello, salt, rank(0));
  ASSERT_TRUE(reply);
  for (size_t i = 0; i < reply->words.size(); ++i) {
    std::string answer = reply->words;
    answer[i] = char(answer[i] ^ 1);
    EXPECT_FALSE(call.conclude(answer)) << "byte " << i << " of the answer";
  }
  for (size_t i = 0; i < hello.size(); ++i)
    for (const int bit : {1, 128}) {
      std::string other = hello;
      other[i] = char(other[i] ^ bit);
      EXPECT_FALSE(reply_to(other, salt, rank(0))) << "byte " << i << " of the hello";
    }
}

TEST(Greeting, RefusesStrangers) {
  EXPECT_FALSE(Greeting(rank(1, kOther), rank(0)).called);
  EXPECT_FALSE(Greeting(rank(1, kKey, 1), rank(0)).called) << "another epoch";
  const Greeting g(rank(1), rank(0));
  EXPECT_TRUE(reply_to(g.hello, g.salt, rank(0)));
  EXPECT_FALSE(reply_to(g.hello, g.salt, rank(2))) << "meant for another rank";
  EXPECT_FALSE(reply_to(g.hello, random_salt(), rank(0))) << "recorded earlier";
  for (size_t n = 0; n < g.hello.size(); ++n) EXPECT_FALSE(reply_to(g.hello.substr(0, n), g.salt, rank(0)));
  Call again(rank(1), 0, Purpose::kMessages);
  again.hello(random_salt());
  EXPECT_FALSE(again.conclude(g.answer)) << "an answer recorded earlier";
  EXPECT_FALSE(again.conclude(""));
}

TEST(Greeting, HidesWhereOneEndWishesTo) {
  for (const bool one : {false, true})
    for (const bool other : {false, true}) {
      Credentials a = rank(1), b = rank(0);
      a.hides = one, b.hides = other;
      const Greeting g(a, b);
      EXPECT_EQ(g.caller->out.hides(), one || other);
      EXPECT_EQ(g.called->out.hides(), one || other);
    }
}

}  // namespace
}  // namespace skein::comm
