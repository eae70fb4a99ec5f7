// What travels to an inbox: a datagram is genuine in all its bits or not at all, and invitations read back.
#include "comm/inbox/inbox_wire.h"

#include <gtest/gtest.h>

namespace skein::comm {
namespace {

Datagram request() {
  Datagram d;
  d.kind = 3, d.worker = 7, d.argument = -1, d.sequence = int64_t(1) << 40;
  return d;
}

TEST(Seal, NoticesEveryBit) {
  const Seal seal(Secret("the job's key"), "salt");
  Datagram d = request();
  seal.sign(d);
  EXPECT_EQ(d.job, seal.job());
  EXPECT_TRUE(seal.genuine(d));
  auto* const bytes = reinterpret_cast<uint8_t*>(&d);
  for (size_t bit = 0; bit < 8 * sizeof d; ++bit) {
    bytes[bit / 8] ^= uint8_t(1 << bit % 8);
    EXPECT_FALSE(seal.genuine(d)) << "bit " << bit;
    bytes[bit / 8] ^= uint8_t(1 << bit % 8);
  }
  EXPECT_TRUE(seal.genuine(d));
}

TEST(Seal, IsOfOneKeyAndOneInbox) {
  Datagram d = request();
  Seal(Secret("key"), "salt").sign(d);
  EXPECT_TRUE(Seal(Secret("key"), "salt").genuine(d));
  EXPECT_FALSE(Seal(Secret("key"), "another").genuine(d));
  EXPECT_FALSE(Seal(Secret("another"), "salt").genuine(d));
  EXPECT_FALSE(Seal({}, "salt").genuine(d));
}

TEST(Invitation, ReadsBackAsItWasWritten) {
  for (const std::vector<std::string>& addresses :
       {std::vector<std::string>{}, {"127.0.0.1"}, {"10.0.0.1", "192.168.7.4"}}) {
    const Invitation i{.salt = std::string("\0\x7f\xff", 3), .port = 65535, .addresses = addresses};
    const Invitation back = Invitation::read(i.words());
    EXPECT_EQ(back.salt, i.salt);
    EXPECT_EQ(back.port, i.port);
    EXPECT_EQ(back.addresses, addresses);
  }
}

TEST(Invitation, IsRefusedWhenMalformed) {
  EXPECT_EQ(Invitation::read("inbox 00ff 1").port, 1);
  for (const char* words : {"", "inbox", "inbox 00ff", "outbox 00ff 1", "inbox 00ff 0", "inbox 00ff 65536",
                            "inbox 00ff -1", "inbox 00ff x", "inbox 00fg 1", "inbox 00f 1", "inbox 00FF 1"})
    EXPECT_THROW(Invitation::read(words), Error) << words;
}

}  // namespace
}  // namespace skein::comm
