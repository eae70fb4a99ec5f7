// The choice of a network that all hosts can be reached by.
#include "comm/join/choose_network.h"

#include <gtest/gtest.h>

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
