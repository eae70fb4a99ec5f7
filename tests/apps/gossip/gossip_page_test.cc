// What gossip_avg tells of strangers, as a page and as JSON.
#include "apps/gossip/gossip_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace skein::apps {
namespace {

TEST(GossipPage, TellsWhatWasRefused) {
  GossipFlags f;
  f.topology = "ring";
  const comm::AveragingResult result;
  GossipStory s;
  s.workers = 2, s.elements = 5, s.result = &result, s.living = {0, 1};
  s.epochs.resize(1);
  s.epochs[0].epoch.members = {0, 1};
  EXPECT_EQ(gossip_page(f, s).find("refused"), std::string::npos);
  EXPECT_EQ(in_json(f, s)["refused_callers"], 0);
  s.refused = {.callers = 2, .messages = 3, .forged = 1, .truncated = 4, .datagrams = 5};
  EXPECT_NE(gossip_page(f, s).find("2 callers without this job's key, 3 foreign messages, 1 forged message"),
            std::string::npos);
  const Json j = in_json(f, s);
  EXPECT_EQ(j["refused_callers"], 2);
  EXPECT_EQ(j["refused_messages"], 3);
  EXPECT_EQ(j["forged_messages"], 1);
  EXPECT_EQ(j["truncated_messages"], 4);
  EXPECT_EQ(j["refused_datagrams"], 5);
}

}  // namespace
}  // namespace skein::apps
