// The header of a message as it lies in memory and on the wire.
#include "comm/transport.h"

#include <gtest/gtest.h>

namespace skein::comm {
namespace {

TEST(Header, LiesInMemoryAsTheWireWantsIt) {
  EXPECT_EQ(offsetof(Header, communicator), 8u);
  EXPECT_EQ(offsetof(Header, epoch), 12u);
  EXPECT_EQ(offsetof(Header, from), 16u);
  EXPECT_EQ(offsetof(Header, tag), 20u);
  EXPECT_EQ(offsetof(Header, step), 24u);
  EXPECT_EQ(offsetof(Header, piece), 32u);
  EXPECT_EQ(offsetof(Header, bytes), 40u);
  EXPECT_EQ(offsetof(Header, codec), 48u);
  EXPECT_EQ(offsetof(Header, layout), 52u);
  EXPECT_EQ(offsetof(Header, weight), 56u);
  const Header h;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(&h), 4), "SKEN");
}

}  // namespace
}  // namespace skein::comm
