// OrderLog: what is recorded is replayed, from a checkpoint too, and nothing else.
#include "optim/order_log.h"

#include <gtest/gtest.h>

#include "optim/snapshot.h"
#include "tests/support/files.h"

namespace skein::optim {
namespace {

Options option(const std::string& key, const std::string& value) {
  Options o;
  o.set(key, value);
  return o;
}

class OrderLogs : public ::testing::Test {
 protected:
  testing::ScratchDir folder_;
  std::string path() const { return folder_ / "order"; }
};

TEST_F(OrderLogs, OffDoesNothing) {
  OrderLog log({}, "0");
  EXPECT_FALSE(log.replaying());
  for (int64_t i = 0; i < 3; ++i) log.happened(i);
}

TEST_F(OrderLogs, ReplaysWhatWasRecorded) {
  {
    OrderLog log(option("record", path()), "server");
    for (int64_t v : {3, 1, -2}) log.happened(v);
  }
  OrderLog log(option("replay", path()), "server");
  for (int64_t v : {3, 1, -2}) {
    ASSERT_EQ(log.next(), v);
    log.happened(v);
  }
  EXPECT_THROW(log.next(), BadFile);
}

TEST_F(OrderLogs, AnotherRunIsNoticed) {
  { OrderLog(option("record", path()), "0").happened(5); }
  OrderLog log(option("replay", path()), "0");
  EXPECT_THROW(log.happened(6), Error);
}

TEST_F(OrderLogs, AReplayMeetsWhereTheRecordedRunDidOnceStepsAreTaken) {
  constexpr int64_t kMeeting = -2;
  {
    OrderLog log(option("record", path()), "0");
    EXPECT_TRUE(log.has_meeting(kMeeting, true));
    log.happened(kMeeting), log.happened(5);
  }
  OrderLog log(option("replay", path()), "0");
  EXPECT_TRUE(log.has_meeting(kMeeting, true));
  log.happened(kMeeting);
  EXPECT_FALSE(log.has_meeting(kMeeting, false));
  EXPECT_THROW(log.has_meeting(kMeeting, true), Error);
  log.happened(5);
  EXPECT_FALSE(log.has_meeting(kMeeting, false)) << "nothing more is recorded";
}

TEST_F(OrderLogs, AResumedRecordingForgetsWhatCameAfterTheCheckpoint) {
  Snapshot state;
  {
    OrderLog log(option("record", path()), "0");
    log.happened(1), log.happened(2);
    state.take([&](Archive& a) { log.visit(a); });
    log.happened(3), log.happened(4);
  }
  {
    OrderLog log(option("record", path()), "0");
    state.restore([&](Archive& a) { log.visit(a); });
    log.happened(9);
  }
  OrderLog log(option("replay", path()), "0");
  for (int64_t v : {1, 2, 9}) log.happened(v);
  OrderLog later(option("replay", path()), "0");
  state.restore([&](Archive& a) { later.visit(a); });
  EXPECT_EQ(later.next(), 9);
}

TEST_F(OrderLogs, ARunThatBeginsDiscardsAnEarlierRecording) {
  for (int64_t run : {1, 2}) {
    OrderLog log(option("record", path()), "0");
    for (int64_t v : {run, 7 + run}) log.happened(v);
  }
  EXPECT_EQ(testing::slurp(path() + ".0"), "skein order of arrivals 1\n2\n9\n");
}

TEST_F(OrderLogs, APositionIsAsFarAsTheFileHasCome) {
  OrderLog log(option("record", path()), "0");
  for (int64_t v : {7, 8, 9}) log.happened(v);
  ASSERT_EQ(log.position(), 3);
  EXPECT_EQ(testing::slurp(path() + ".0"), "skein order of arrivals 1\n7\n8\n9\n");
  log.go_to(1);
  EXPECT_EQ(testing::slurp(path() + ".0"), "skein order of arrivals 1\n7\n");
  EXPECT_EQ(log.position(), 1);
  EXPECT_THROW(log.go_to(2), BadFile) << "it has no second entry any more";
}

TEST_F(OrderLogs, RefusesWhatIsNoRecording) {
  EXPECT_THROW(OrderLog(option("replay", path()), "0"), BadFile);
  testing::spill(path() + ".0", "something else\nof many hours\n");
  EXPECT_THROW(OrderLog(option("replay", path()), "0"), BadFile);
  EXPECT_THROW(OrderLog(option("record", path()), "0"), BadFile);
  EXPECT_EQ(testing::slurp(path() + ".0"), "something else\nof many hours\n");
  testing::spill(path() + ".0", "skein order of arrivals 1\n1\ntwo\n");
  EXPECT_THROW(OrderLog(option("replay", path()), "0"), BadFile);
  EXPECT_THROW(OrderLog(option("record", "/no/such/folder/x"), "0"), BadFile);
  Options both = option("record", path());
  both.set("replay", path());
  EXPECT_THROW(OrderLog(both, "0"), BadOption);
}

}  // namespace
}  // namespace skein::optim
