// Newcomers at the door of a running job: who is taken in, who is refused, and who learns why.
#include "comm/join/door.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <set>

#include "comm/join/rendezvous.h"
#include "tests/support/keys.h"

namespace skein::comm {
namespace {

View with(MemberId newcomer) {
  View v;
  v.epoch = 2;
  v.members = {{1, "card of the member", true}, {newcomer, "card of the newcomer", false}};
  v.step = 17;
  return v;
}

// A job of one member, whose next epoch begins when the test says so.
struct Job {
  Job() : listener(listen_tcp("127.0.0.1", {}, port)) { door.open(); }
  std::string admit(const Application& a) {
    if (a.job == "no job") throw Error("the council is closed");
    if (a.job == "last job") door.tell(with(a.member.id));
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
                   if (m == 13) throw Error("nobody is allowed to forget it");
                 },
             .describe = [](const std::string& version) -> std::string {
               if (version != "version 2") throw Error("this job is by version 2");
               return "lr = 0.1\n";
             }}};
};

// Another caller of that name was in the view, or another member has proposed it.
TEST(Door, WhoIsToldOfItsEpochWhileItIsRefusedIsNotRefusedAnyMore) {
  Job job;
  EXPECT_EQ(job.knock({{7, "card of the newcomer", false}, "last job"}), with(7));
  EXPECT_EQ(job.door.waiting(), std::vector<MemberId>());
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

TEST(Door, TellsWhoWaitsAndWhoComesTooLateThatTheRunHasEnded) {
  Job job;
  std::thread early([&] { EXPECT_THROW(job.knock({{7, "", false}, "this job"}), RunEnded); });
  job.await_proposal(7);
  job.door.tell(End{.step = 25, .interrupted = true});
  early.join();
  EXPECT_THROW(comm::ask({"127.0.0.1"}, job.port, kKey, "version 2", after(20)), RunEnded);
  try {
    job.knock({{8, "", false}, "this job"});
    FAIL() << "was taken in";
  } catch (const RunEnded& e) { EXPECT_EQ(e.end, End{.step = 25}) << "it was not interrupted itself"; }
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

TEST(Door, TellsWhoAsksWhatTheJobIsUnlessItIsOfAnotherVersion) {
  Job job;
  const auto ask = [&](const std::string& version, const Secret& key) {
    return comm::ask({"127.0.0.1"}, job.port, key, version, after(20));
  };
  EXPECT_EQ(ask("version 2", kKey), "lr = 0.1\n");
  EXPECT_EQ(job.strangers, 0);
  EXPECT_FALSE(ask("version 2", Secret(std::string(kJobKeyBytes, 'x'))));
  try {
    ask("version 1", kKey);
    FAIL() << "was told";
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "this job is by version 2"); }
  EXPECT_EQ(job.strangers, 2);
  EXPECT_TRUE(job.proposed.empty());
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

// An eavesdropper repeats, on its own connection, what a newcomer has said.
TEST(Door, RefusesAndCountsAReplayedHandshake) {
  Job job;
  const auto soon = after(20);
  const auto say = [&](const std::string& words) {
    Fd s = connect_tcp({"127.0.0.1"}, job.port, soon);
    std::string salt, answer;
    EXPECT_TRUE(read_all(s, salt, kSaltBytes, soon) && write_all(s, words, soon));
    return read_all(s, answer, kAnswerBytes, soon) ? answer : std::string();
  };
  Fd socket = connect_tcp({"127.0.0.1"}, job.port, soon);
  Call newcomer({.key = kKey, .me = 0, .size = 1, .epoch = 0}, 0, Purpose::kJoin);
  std::string salt, answer;
  ASSERT_TRUE(read_all(socket, salt, kSaltBytes, soon));
  const std::string hello = newcomer.hello(salt);
  ASSERT_TRUE(write_all(socket, hello, soon) && read_all(socket, answer, kAnswerBytes, soon));
  std::optional<Session> session = newcomer.conclude(answer);
  ASSERT_TRUE(session);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Fd tapped(ends[1]);
  Line line{Fd(ends[0]), std::move(session->out), std::move(session->in)};
  ASSERT_TRUE(line.write_string(write_application({{7, "", false}, "this job"}), soon));
  std::string application(4096, 0);
  application.resize(size_t(recv(tapped.get(), application.data(), application.size(), 0)));
  ASSERT_TRUE(write_all(socket, application, soon));
  job.await_proposal(7);
  EXPECT_EQ(job.strangers, 0);
  EXPECT_EQ(say(hello + application), std::string(kAnswerBytes, 0));
  EXPECT_EQ(job.strangers, 1);
  EXPECT_EQ(job.door.waiting(), std::vector<MemberId>{7});
}

// It holds the key, and knows its rank and epoch.
TEST(Door, HearsNothingOfWhatAnExcludedMemberHasToSay) {
  Job job;
  const auto soon = after(20);
  int refused_for = 0;
  for (const Purpose p : {Purpose::kMessages, Purpose::kTrial})
    for (const uint32_t epoch : {0u, 1u, 7u}) {
      bool refused = false;
      auto line = call(connect_tcp({"127.0.0.1"}, job.port, soon),
                       {.key = kKey, .me = 1, .size = 2, .epoch = epoch}, 0, p, soon, soon, &refused);
      if (line) {  // it is heard, and hung up on, since that is no door for messages
        std::string word;
        EXPECT_FALSE(line->read_string(word, soon));
      }
      ++refused_for;
    }
  EXPECT_FALSE(job.knock({{7, "", false}, "this job"}, kKey, 0.3))
      << "the door still hears, and nobody tells";
  EXPECT_EQ(job.strangers, refused_for);
}

// The members of a new epoch meet at the socket of their first one's door.
TEST(Door, AThousandHalfOpenConnectionsHoldUpNoMeeting) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit before = files;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  {
    Job job;
    std::vector<Fd> silent;
    for (int i = 0; i < 1000; ++i) silent.push_back(connect_tcp({"127.0.0.1"}, job.port, after(20)));
    job.door.close();
    const auto meet = [&](Rank me) {
      RendezvousOptions r;
      r.rank = me, r.size = 2, r.host = "127.0.0.1", r.port = job.port;
      r.key = kKey, r.epoch = 2, r.deadline = 20;
      if (me == 0) r.listener = Fd(dup(job.listener.get()));
      r.in_vain = [] { return false; };
      return Rendezvous(std::move(r)).all_gather(std::to_string(me));
    };
    std::vector<std::string> there, here;
    std::thread other([&] { there = meet(1); });
    here = meet(0);
    other.join();
    EXPECT_EQ(here, (std::vector<std::string>{"0", "1"}));
    EXPECT_EQ(there, here);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// It has proved itself, and says this next.
Line say_at(const Job& job, const std::function<void(Line&)>& say) {
  const auto soon = after(20);
  std::optional<Line> line =
      call(connect_tcp({"127.0.0.1"}, job.port, soon), {.key = kKey, .me = 0, .size = 1, .epoch = 0}, 0,
           Purpose::kJoin, soon, soon);
  CHECK(line.has_value(), "the door does not answer");
  say(*line);
  return std::move(*line);
}

TEST(Door, NoticesThatANewcomerHasHungUp) {
  Job job;
  {
    const Line line = say_at(job, [](Line& l) {
      l.write_string(write_application({{7, "", false}, "this job"}), after(20));
    });
    job.await_proposal(7);
  }
  job.await_departure(7);
}

// A reason that is thrown, trouble instead of an application, and a guest that cannot be forgotten: it hears
// the next one.
TEST(Door, OutlivesWhateverIsThrownAtIt) {
  Job job;
  try {
    job.knock({{7, "", false}, "no job"});
    FAIL() << "was taken in";
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "the council is closed"); }
  EXPECT_TRUE(job.door.waiting().empty());
  {
    Line line = say_at(job, [](Line& l) { l.write_trouble("I have changed my mind"); });
    std::string word;
    EXPECT_FALSE(line.read_string(word, after(20)));  // it is hung up on
  }
  EXPECT_EQ(job.strangers, 2);
  {
    const Line line = say_at(job, [](Line& l) {
      l.write_string(write_application({{13, "", false}, "this job"}), after(20));
    });
    job.await_proposal(13);
  }
  job.await_departure(13);
  say_at(job, [](Line& l) { l.write_string(write_application({{8, "", false}, "this job"}), after(20)); });
  job.await_proposal(8);
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
