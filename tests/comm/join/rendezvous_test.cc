// Ranks that meet over TCP, and everybody who should not get in.
#include "comm/join/rendezvous.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "tests/support/keys.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

struct MeetingSite {
  int port = 0;
  Fd listener = listen_at(port, true);
  RendezvousOptions options(Rank r, int n, double deadline = 10) {
    RendezvousOptions o;
    o.rank = r, o.size = n, o.port = port, o.key = kKey, o.deadline = deadline;
    if (r == 0) o.listener = std::move(listener);
    return o;
  }
};

// The next caller; empty if none comes in so many milliseconds.
Fd accept_within(int milliseconds, const Fd& listener) {
  pollfd p{listener.get(), POLLIN, 0};
  return poll(&p, 1, milliseconds) == 1 ? Fd(accept4(p.fd, nullptr, nullptr, SOCK_CLOEXEC)) : Fd();
}

template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const Error& e) { return e.what(); }
  return "";
}

TEST(Rendezvous, GathersStringsInRankOrder) {
  for (int n : {1, 2, 5, 9}) {
    MeetingSite site;
    on_threads(n, [&](Rank r) {
      Rendezvous meet(site.options(r, n));
      for (int round = 0; round < 3; ++round) {
        const auto all = meet.all_gather(std::string(size_t(r * 1000 + round), char('a' + r)));
        ASSERT_EQ(int(all.size()), n);
        for (Rank j = 0; j < n; ++j)
          EXPECT_EQ(all[size_t(j)], std::string(size_t(j * 1000 + round), char('a' + j)));
      }
    });
  }
}

TEST(Rendezvous, OthersMayComeBeforeRankZero) {
  MeetingSite site;
  const int port = site.port;
  site.listener = {};
  on_threads(2, [&](Rank r) {
    if (r == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    RendezvousOptions o = site.options(r, 2);
    o.listener = {}, o.port = port;
    Rendezvous meet(std::move(o));
    EXPECT_EQ(meet.all_gather("x").size(), 2u);
  });
}

// The first port belongs to a process that hangs up, the second to another job, the third is free.
TEST(Rendezvous, TakesTheFirstFreePortAndPassesStrangersAtTheOthers) {
  int hangs_up = 0, free = 0;
  Fd strange = listen_at(hangs_up, false), later = listen_at(free, false);
  MeetingSite other;
  later = {};
  std::atomic<bool> over{false};
  const auto options = [&](Rank r) {
    RendezvousOptions o;
    o.rank = r, o.size = 2, o.key = kKey, o.deadline = 20;
    o.port = hangs_up, o.more_ports = {other.port, free};
    return o;
  };
  on_threads(4, [&](Rank r) {
    if (r == 2) {
      while (!over) accept_within(10, strange);
    } else if (r == 3) {
      RendezvousOptions o = other.options(0, 2, 20);
      o.key = kOther;
      message([&] { Rendezvous(std::move(o)); });
    } else {
      Rendezvous meet(options(r));
      EXPECT_EQ(meet.all_gather(r == 0 ? "a" : "b"), (std::vector<std::string>{"a", "b"}));
      if (r == 0) return;
      over = true;
      RendezvousOptions o = other.options(1, 2);  // ends the other job's waiting
      o.key = kOther;
      message([&] { Rendezvous(std::move(o)); });
    }
  });
}

TEST(Rendezvous, SaysWhenNoneOfSeveralPortsIsFree) {
  MeetingSite one, two;
  RendezvousOptions o;
  o.size = 2, o.key = kKey, o.port = one.port, o.more_ports = {two.port};
  EXPECT_NE(message([&] { Rendezvous(std::move(o)); }).find("all are in use"), std::string::npos);
}

TEST(Rendezvous, NamesWhoNeverArrivesOnEveryRank) {
  MeetingSite site;
  std::vector<std::string> said(4);
  on_threads(4, [&](Rank r) {
    if (r == 2) return;
    said[size_t(r)] = message([&] { Rendezvous(site.options(r, 4, 2)).all_gather(""); });
  });
  for (Rank r : {0, 1, 3})
    EXPECT_NE(said[size_t(r)].find("no rank 2 after 2 s"), std::string::npos) << said[size_t(r)];
}

TEST(Rendezvous, NamesAnAddressWhereNobodyListens) {
  MeetingSite site;
  site.listener = {};
  RendezvousOptions o = site.options(1, 2, 0.3);
  EXPECT_NE(message([&] { Rendezvous(std::move(o)); }).find("rank 0 did not answer at 127.0.0.1"),
            std::string::npos);
}

TEST(Rendezvous, RefusesAndCountsStrangers) {
  MeetingSite site;
  std::string refused;
  int64_t strangers = 0;
  std::atomic<int> refusals{0};
  Fd silent =
      connect_tcp({"127.0.0.1"}, site.port, Clock::now() + std::chrono::seconds(5));  // never says a word
  on_threads(4, [&](Rank r) {
    const auto deadline = Clock::now() + std::chrono::seconds(5);
    if (r == 2) {  // another job's worker
      RendezvousOptions o = site.options(1, 2);
      o.key = kOther;
      refused = message([&] { Rendezvous(std::move(o)); });
      ++refusals;
    } else if (r == 3) {  // a foreign protocol
      const Fd s = connect_tcp({"127.0.0.1"}, site.port, deadline);
      write_all(s, "GET / HTTP/1.1\r\nHost: nobody.example\r\nAccept: */*, anything at all, really\r\n\r\n",
                deadline);
      std::string answer;
      EXPECT_FALSE(read_all(s, answer, kSaltBytes + kAnswerBytes + 1, deadline));
      ++refusals;
    } else {
      while (r == 1 && refusals < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      Rendezvous meet(site.options(r, 2));
      EXPECT_EQ(meet.all_gather("x").size(), 2u);
      if (r == 0) strangers = meet.strangers();
    }
  });
  EXPECT_EQ(strangers, 2);
  EXPECT_NE(refused.find("another job key"), std::string::npos) << refused;
}

// A rank 0 that strangers flood may have had to hang up on any caller.
TEST(Rendezvous, CallsAgainWhereItWasHungUpOn) {
  MeetingSite site;
  on_threads(2, [&](Rank r) {
    for (int i = 0; r == 0 && i < 3; ++i) EXPECT_TRUE(accept_within(10'000, site.listener));
    EXPECT_EQ(Rendezvous(site.options(r, 2)).all_gather("x").size(), 2u);
  });
}

TEST(Rendezvous, SaysWhenWorkersExpectDifferentNumbers) {
  MeetingSite site;
  std::vector<std::string> said(2);
  on_threads(2, [&](Rank r) {
    said[size_t(r)] = message([&] { Rendezvous(site.options(r, r == 0 ? 2 : 3, 5)).all_gather(""); });
  });
  for (const std::string& s : said)
    EXPECT_NE(s.find("rank 0 expects 2 workers, rank 1 expects 3"), std::string::npos) << s;
}

TEST(Rendezvous, SaysWhenThePortIsTaken) {
  MeetingSite site;
  int port = site.port;
  EXPECT_NE(message([&] { listen_at(port, true); }).find(text("port ", port, " is in use")),
            std::string::npos);
}

TEST(Rendezvous, NamesWhoLeavesDuringAnExchange) {
  MeetingSite site;
  std::vector<std::string> said(3);
  on_threads(3, [&](Rank r) {
    said[size_t(r)] = message([&] {
      Rendezvous meet(site.options(r, 3, 5));
      meet.all_gather("all here");
      if (r != 1) meet.all_gather("one is gone");
    });
  });
  for (Rank r : {0, 2}) EXPECT_NE(said[size_t(r)].find("rank 1 left"), std::string::npos) << said[size_t(r)];
}

}  // namespace
}  // namespace skein::comm
