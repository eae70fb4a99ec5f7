// The choice of a network that all hosts can be reached by.
#include "comm/join/choose_network.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "comm/join/interfaces.h"
#include "tests/support/files.h"
#include "tests/support/says.h"

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

// Rank 0 of two, where rank 1 is on another host, whose user has chosen an interface.
class Elsewhere final : public Exchange {
 public:
  Rank rank() const override { return 0; }
  int size() const override { return 2; }
  std::vector<std::string> all_gather(const std::string& mine) override {
    const NetworkCard other{.port = 1, .told = true, .candidates = {on("198.51.100", 0)}};
    return {mine, other.write()};
  }
};
NetworkChoice chosen(const std::string& ucx_net_devices, const std::string& interface) {
  setenv("UCX_NET_DEVICES", ucx_net_devices.c_str(), 1);
  struct Unset {
    ~Unset() { unsetenv("UCX_NET_DEVICES"); }
  } unset;
  Elsewhere e;
  TransportOptions o;
  o.interface = interface;
  Refusals refusals;
  return choose_network(e, {0, 1}, o, refusals.callers);
}

TEST(ChooseNetwork, ObeysTheListOfDevicesThatUcxReads) {
  for (const char* list : {"lo", "eth99,lo", "lo,mlx9_9:1"}) {
    const NetworkChoice c = chosen(list, "eth98");
    EXPECT_EQ(c.listen, "127.0.0.1") << list;
    EXPECT_EQ(c.why, text("network: ", list, ", as UCX_NET_DEVICES says"));
  }
  EXPECT_SAYS(testing::message_of<BadOption>([] { chosen("eth98,eth99", "lo"); }),
              "UCX_NET_DEVICES eth98,eth99: no such interface");
}
TEST(ChooseNetwork, LeavesItToTheFlagWhereUcxMayUseAllDevices) {
  for (const char* list : {"all", "eth99,all"}) {
    const NetworkChoice c = chosen(list, "lo");
    EXPECT_EQ(c.listen, "127.0.0.1") << list;
    EXPECT_EQ(c.why, "network: lo, as --interface says");
  }
}

}  // namespace
}  // namespace skein::comm
