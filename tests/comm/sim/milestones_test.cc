// Milestones: when events come, in which order, and what one of them may add.
#include "comm/sim/milestones.h"

#include <gtest/gtest.h>

#include <vector>

namespace skein::comm::sim {
namespace {

TEST(Milestones, ComeAtTheirNumbersInTheOrderInWhichTheyWereAdded) {
  Milestones m;
  std::vector<std::pair<int, uint64_t>> seen;
  const auto add = [&](uint64_t number, int name) {
    m.add(number, [&, name] { seen.emplace_back(name, m.counted()); });
  };
  add(3, 1), add(2, 2), add(3, 3);
  while (m.counted() < 3) m.count();
  add(1, 4);  // that is past
  EXPECT_EQ(seen.size(), 3u);
  m.count();
  EXPECT_EQ(seen, (std::vector<std::pair<int, uint64_t>>{{2, 2}, {1, 3}, {3, 3}, {4, 4}}));
}

TEST(Milestones, OneMayAddTheNext) {
  Milestones m;
  int again = 0;
  m.add(1, [&] {
    m.add(1, [&] { ++again; });
    m.add(3, [&] { ++again; });
  });
  m.count();
  EXPECT_EQ(again, 1);
  m.count();
  EXPECT_EQ(again, 1);
  m.count();
  EXPECT_EQ(again, 2);
}

}  // namespace
}  // namespace skein::comm::sim
