// Interfaces by their names, and the network that measurements choose.
#include <gtest/gtest.h>

#include "comm/join/choose_network.h"
#include "comm/join/interfaces.h"

namespace skein::comm {
namespace {

using Hosts = std::vector<std::vector<Candidate>>;

Candidate on(const std::string& network, double measured, int64_t declared = 10000) {
  return {.name = "eth",
          .address = network + ".1",
          .network = network,
          .declared = declared,
          .measured = measured};
}

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

TEST(ChooseNetwork, TakesTheFastestNetworkOfAll) {
  const Hosts hosts = {{on("a", 94), on("b", 9000)}, {on("b", 8000), on("a", 95)}};
  EXPECT_EQ(fastest(hosts), (std::vector<int>{1, 0}));
}

TEST(ChooseNetwork, JudgesANetworkByItsSlowestLink) {
  const Hosts hosts = {
      {on("a", 900), on("b", 9000)}, {on("a", 900), on("b", 10)}, {on("a", 900), on("b", 9000)}};
  EXPECT_EQ(fastest(hosts), (std::vector<int>{0, 0, 0}));
}

TEST(ChooseNetwork, LeavesOutWhatOneHostCannotBeReachedBy) {
  const Hosts hosts = {{on("a", 900), on("b", 9000)}, {on("a", 900), on("b", 0)}};
  EXPECT_EQ(fastest(hosts), (std::vector<int>{0, 0}));
}

TEST(ChooseNetwork, LetsTheDriversWordDecideBetweenLikeLinks) {
  const Hosts slower_first = {{on("a", 1000, 1000), on("b", 980, 10000)},
                              {on("a", 1000, 1000), on("b", 980, 10000)}};
  EXPECT_EQ(fastest(slower_first), (std::vector<int>{1, 1}));
  const Hosts alike = {{on("a", 980), on("b", 1000)}, {on("a", 980), on("b", 1000)}};
  EXPECT_EQ(fastest(alike), (std::vector<int>{0, 0})) << "the first host's order";
}

TEST(ChooseNetwork, GoesByHostWhereTheyHaveNoNetworkInCommon) {
  const Hosts routed = {{on("a", 0), on("b", 500)}, {on("c", 700), on("d", 100)}, {on("e", 0)}};
  EXPECT_EQ(fastest(routed), (std::vector<int>{1, 0, -1}));
}

}  // namespace
}  // namespace skein::comm
