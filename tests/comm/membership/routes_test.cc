// Routes: letters by two transports, of which each reaches some members.
#include "comm/membership/routes.h"

#include <gtest/gtest.h>

#include "comm/transports/local_transport.h"

namespace skein::comm {
namespace {

// Members 100, 101, ... of an epoch, in a world of their own.
struct Epoch {
  Epoch(uint32_t number, int n) : world(local_world(n)) {
    view.epoch = number;
    for (int r = 0; r < n; ++r) view.members.push_back({MemberId(100 + r), "card"});
  }
  Route of(Rank r) const { return {world[size_t(r)].get(), view}; }
  std::vector<std::unique_ptr<Transport>> world;
  View view;
};

std::vector<std::string> taken(const Routes& routes, MemberId from) {
  std::vector<std::string> all;
  for (const ReceivedLetter& l : take_letters(routes))
    if (l.from == from) all.push_back(l.bytes);
  return all;
}

TEST(Routes, LeadToTheMembersAndIntoTheEpochsOfTheirViews) {
  const Epoch first(1, 2), second(2, 3);
  const Routes routes{first.of(0), second.of(0)};
  EXPECT_TRUE(lead_to(routes, 101) && lead_to(routes, 102));
  EXPECT_FALSE(lead_to(routes, 103) || lead_to({first.of(0)}, 102));
  EXPECT_TRUE(lead_into(routes, 1) && lead_into(routes, 2));
  EXPECT_FALSE(lead_into(routes, 3) || lead_into({}, 1));
}

TEST(Routes, LettersComeInOrderFromWhoHasSentThem) {
  const Epoch e(1, 3);
  send({e.of(0)}, {{101, "one"}, {102, "two"}, {101, std::string("\0three", 6)}});
  send({e.of(2)}, {{101, "four"}});
  const std::vector<ReceivedLetter> all = take_letters({e.of(1)});
  EXPECT_EQ(all.size(), 3u);
  std::vector<std::string> of_first;
  for (const ReceivedLetter& l : all)
    if (l.from == 100) of_first.push_back(l.bytes);
  EXPECT_EQ(of_first, (std::vector<std::string>{"one", std::string("\0three", 6)}));
  EXPECT_TRUE(take_letters({e.of(1)}).empty()) << "each is taken once";
  EXPECT_EQ(taken({e.of(2)}, 100), std::vector<std::string>{"two"});
}

TEST(Routes, AMemberOfTwoEpochsIsWrittenToByBothAndAStrangerByNone) {
  const Epoch first(1, 2), second(2, 3);
  send({first.of(0), second.of(0)}, {{101, "old"}, {102, "new"}, {999, "nobody"}});
  EXPECT_EQ(taken({first.of(1)}, 100), std::vector<std::string>{"old"});
  EXPECT_EQ(taken({second.of(1)}, 100), std::vector<std::string>{"old"});
  EXPECT_EQ(taken({second.of(2)}, 100), std::vector<std::string>{"new"});
}

}  // namespace
}  // namespace skein::comm
