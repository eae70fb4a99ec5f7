// Newcomers at the door of a running job: who is taken in, who is refused, and who learns why.
#include "comm/join/door.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <set>

namespace skein::comm {
namespace {

const Secret kKey(std::string(kJobKeyBytes, 'k'));

// A job of one member, whose next epoch begins when the test says so.
struct Job {
  Job() : listener(listen_tcp("127.0.0.1", {}, port)) { door.open(); }
  std::string admit(const Application& a) {
    if (a.job != "this job") return "this job is another one";
    const std::lock_guard lock(mutex);
    proposed.insert(a.member.id);
    changed.notify_all();
    return "";
  }
  void await_proposal(MemberId m) {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return proposed.count(m) > 0; }));
  }
  void await_departure(MemberId m) {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return departed.count(m) > 0; }));
  }
  std::optional<View> knock(const Application& a, const Secret& key = kKey, double patience = 20) {
    return comm::knock({"127.0.0.1"}, port, key, a, after(patience));
  }

  int port = 0;
  Fd listener;
  Refusals::Counter strangers{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::set<MemberId> proposed, departed;
  Door door{listener,
            kKey,
            strangers,
            {.admit = [this](const Application& a) { return admit(a); },
             .gone =
                 [this](MemberId m) {
                   const std::lock_guard lock(mutex);
                   departed.insert(m);
                   changed.notify_all();
                 }}};
};

View with(MemberId newcomer) {
  View v;
  v.epoch = 2;
  v.members = {{1, "card of the member", true}, {newcomer, "card of the newcomer", false}};
  v.step = 17;
  return v;
}

TEST(Door, TellsANewcomerOfTheEpochThatItIsIn) {
  Job job;
  std::optional<View> told;
  std::thread newcomer([&] { told = job.knock({{7, "card of the newcomer", false}, "this job"}); });
  job.await_proposal(7);
  EXPECT_EQ(job.door.waiting(), std::vector<MemberId>{7});
  job.door.tell(with(8));  // an epoch without it is not its affair
  job.door.tell(with(7));
  newcomer.join();
  ASSERT_TRUE(told);
  EXPECT_EQ(*told, with(7));
  EXPECT_EQ(job.strangers, 0);
}

TEST(Door, SaysWhyItRefuses) {
  Job job;
  try {
    job.knock({{7, "", false}, "that job"});
    FAIL() << "was taken in";
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "this job is another one"); }
  EXPECT_EQ(job.strangers, 1);
}

TEST(Door, RefusesAndCountsWhoeverHasNoKey) {
  Job job;
  EXPECT_FALSE(job.knock({{7, "", false}, "this job"}, Secret(std::string(kJobKeyBytes, 'x'))));
  EXPECT_EQ(job.strangers, 1);
  EXPECT_TRUE(job.proposed.empty());
}

TEST(Door, SilentCallersDoNotKeepANewcomerWaiting) {
  Job job;
  std::vector<Fd> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(connect_tcp({"127.0.0.1"}, job.port, after(5)));
  std::optional<View> told;
  std::thread newcomer([&] { told = job.knock({{7, "", false}, "this job"}); });
  job.await_proposal(7);
  job.door.tell(with(7));
  newcomer.join();
  EXPECT_TRUE(told);
}

TEST(Door, NoticesThatANewcomerHasHungUp) {
  Job job;
  EXPECT_FALSE(job.knock({{7, "", false}, "this job"}, kKey, 0.3)) << "nobody has told it of an epoch";
  job.await_departure(7);
}

TEST(Door, AfterItIsClosedThoseWhoWaitAreStillTold) {
  Job job;
  std::optional<View> told;
  std::thread newcomer([&] { told = job.knock({{7, "", false}, "this job"}); });
  job.await_proposal(7);
  job.door.close();
  job.door.tell(with(7));
  newcomer.join();
  EXPECT_TRUE(told);
}

TEST(Applications, AreReadAsTheyWereWrittenAndNotAtAllIfDamaged) {
  const Application a{{0x123456789abcdef0, "4711 10.0.0.7", false}, "this job"};
  const std::string bytes = write_application(a);
  const auto back = read_application(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->member, a.member);
  EXPECT_EQ(back->job, a.job);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(read_application(bytes.substr(0, n))) << n;
  EXPECT_FALSE(read_application(bytes + "x"));
  std::string huge = bytes;
  for (size_t i = 8; i < 12; ++i) huge[i] = char(0xff);
  EXPECT_FALSE(read_application(huge));
}

}  // namespace
}  // namespace skein::comm
