// The census of odd files: each file counts once, under its first reason if it is left out.
#include "data/odd.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/files.h"

namespace skein::data {
namespace {

TEST(Census, CountsAFileOnceHoweverOftenItIsVisited) {
  Census c;
  for (int visit = 0; visit < 3; ++visit) c.add(5, kGray), c.add(9, kCmyk | kMisnamed), c.add(2, 0);
  EXPECT_EQ(c.count(kGray), 1);
  EXPECT_EQ(c.count(kCmyk), 1);
  EXPECT_EQ(c.count(kMisnamed), 1);
  EXPECT_EQ(c.converted(), 2);
  EXPECT_EQ(c.left_out(), 0);
}

TEST(Census, AFileThatIsLeftOutCountsUnderItsFirstReasonAlone) {
  Census c;
  c.add(5, kGray | kMisnamed);
  c.add(5, kUndecodable);
  c.add(5, kTruncated);
  EXPECT_EQ(c.count(kTruncated), 1);
  for (const Odd other : {kGray, kMisnamed, kUndecodable, kEmpty}) EXPECT_EQ(c.count(other), 0) << other;
  EXPECT_EQ(c.converted(), 0);
  EXPECT_EQ(c.left_out(), 1);
}

TEST(Census, JoinsOthersAndReadsBack) {
  Census a, b;
  a.add(17, kGray), b.add(17, kEmpty), b.add(41, kPalette | kTransparent);
  a.add(b);
  EXPECT_EQ(a.pack(), "17:258,41:24");
  EXPECT_EQ(Census::unpack(a.pack()).files(), a.files());
  EXPECT_TRUE(Census::unpack("").empty());
  EXPECT_EQ(Census().pack(), "");
}

TEST(Census, RefusesADamagedList) {
  for (const char* bad : {"1", "1:", ":2", "1:2,", ",1:2", "1:2;3:4", "-1:2", "1:65536", "1:2 ", "x:1",
                          "99999999999999999999:1"})
    EXPECT_TRUE(testing::has(testing::message_of<BadFile>([&] { Census::unpack(bad); }), bad)) << bad;
}

TEST(OddKinds, HaveEachANameAndAReasonIfTheyAreLeftOut) {
  std::set<std::string> names, reasons;
  for (const OddKind& k : odd_kinds()) {
    EXPECT_TRUE(names.insert(k.name).second) << k.name;
    if (left_out(k.kind)) reasons.insert(why_left_out(k.kind));
  }
  EXPECT_EQ(reasons.size(), 4u);
  EXPECT_STREQ(why_left_out(kEmpty | kUndecodable), "empty");
}

}  // namespace
}  // namespace skein::data
