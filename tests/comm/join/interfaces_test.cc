// A host's network interfaces.
#include "comm/join/interfaces.h"

#include <gtest/gtest.h>

namespace skein::comm {
namespace {

TEST(Interfaces, NetworkIsTheAddressWithoutItsHost) {
  EXPECT_EQ((Interface{.name = "", .address = "10.99.3.17", .prefix = 24}.network()), "10.99.3.0/24");
  EXPECT_EQ((Interface{.name = "", .address = "172.17.200.1", .prefix = 12}.network()), "172.16.0.0/12");
  EXPECT_EQ((Interface{.name = "", .address = "10.0.0.5", .prefix = 32}.network()), "10.0.0.5/32");
  EXPECT_EQ((Interface{.name = "", .address = "10.0.0.5", .prefix = 0}.network()), "0.0.0.0/0");
}

TEST(Interfaces, BridgesOfContainersAreKnownByName) {
  for (const char* name : {"docker0", "br-0123456789ab", "virbr0", "cni0", "lxdbr0"})
    EXPECT_TRUE(is_inward(name)) << name;
  for (const char* name : {"eth0", "br0", "br-lan", "br-0123456789xy", "enp3s0", "bond0", "ib0"})
    EXPECT_FALSE(is_inward(name)) << name;
}

TEST(Interfaces, LoopbackIsListedAndMarked) {
  bool found = false;
  for (const Interface& i : interfaces())
    if (i.address == "127.0.0.1") found = i.loopback && i.prefix == 8 && i.mtu > 0;
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace skein::comm
