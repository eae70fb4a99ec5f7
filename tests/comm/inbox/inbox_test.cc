// Inbox: order, exactly once, fairness, bad weather, and datagrams that must change nothing.
#include "comm/inbox/inbox.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <random>

#include "comm/inbox/inbox_client.h"
#include "tests/support/keys.h"
#include "tests/support/lossy_proxy.h"
#include "tests/support/soon.h"

namespace skein::comm {
namespace {

// Sends raw bytes to an inbox and hears what comes back.
class Voice {
 public:
  explicit Voice(const Inbox& inbox) : seal_(kKey, inbox.invitation().salt), socket_(udp_socket()) {
    to_.sin_family = AF_INET;
    to_.sin_port = htons(uint16_t(inbox.invitation().port));
    to_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  Datagram genuine(int worker, int64_t sequence, uint16_t kind = 1) const {
    Datagram d;
    d.worker = worker, d.sequence = sequence, d.kind = kind;
    seal_.sign(d);
    return d;
  }
  const Seal& seal() const { return seal_; }
  void say(const void* bytes, size_t n) {
    sendto(socket_.get(), bytes, n, 0, reinterpret_cast<sockaddr*>(&to_), sizeof to_);
  }
  void say(const Datagram& d) { say(&d, sizeof d); }
  bool hears(int ms) {
    timeval t{ms / 1000, ms % 1000 * 1000};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    char room[64];
    return recv(socket_.get(), room, sizeof room, 0) > 0;
  }

 private:
  const Seal seal_;
  Fd socket_;
  sockaddr_in to_{};
};

InboxCounts counts_after(const Inbox& inbox, const std::function<bool(const InboxCounts&)>& enough) {
  for (const auto until = soon(5000); !enough(inbox.counts()) && Clock::now() < until;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return inbox.counts();
}

TEST(Inbox, ServesInOrderOfArrival) {
  Inbox inbox({.key = kKey, .workers = 8});
  std::vector<std::unique_ptr<InboxClient>> clients;
  for (int w = 0; w < 8; ++w) clients.push_back(std::make_unique<InboxClient>(inbox.invitation(), kKey, w));
  for (int w : {5, 2, 7, 0}) {
    const int64_t coming = clients[size_t(w)]->coming();
    EXPECT_EQ(clients[size_t(w)]->ask(uint16_t(w), 10 * w), coming);
  }
  for (int w : {5, 2, 7, 0}) {
    const auto r = inbox.next(soon(5000));
    ASSERT_TRUE(r);
    EXPECT_EQ(r->worker, w);
    EXPECT_EQ(r->kind, w);
    EXPECT_EQ(r->argument, 10 * w);
    EXPECT_EQ(r->sequence + 1, clients[size_t(w)]->coming());
  }
  EXPECT_FALSE(inbox.next(soon()));
}

TEST(Inbox, TakesADatagramOnceAndAcknowledgesItAsOftenAsItComes) {
  Inbox inbox({.key = kKey, .workers = 2});
  Voice v(inbox);
  for (int i = 0; i < 5; ++i) v.say(v.genuine(1, 100));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(v.hears(5000));
  EXPECT_TRUE(inbox.next(soon(5000)));
  v.say(v.genuine(1, 100));  // also when it has been served
  EXPECT_TRUE(v.hears(5000));
  EXPECT_FALSE(inbox.next(soon()));
  EXPECT_EQ(inbox.counts().accepted, 1);
  EXPECT_EQ(inbox.counts().duplicates, 5);
}

TEST(Inbox, NeverWaitsForWhoServes) {
  Inbox inbox({.key = kKey, .workers = 700});
  std::vector<std::unique_ptr<InboxClient>> clients;
  for (int w = 0; w < 700; ++w) clients.push_back(std::make_unique<InboxClient>(inbox.invitation(), kKey, w));
  for (auto& c : clients) c->begin(1);
  for (auto& c : clients)
    for (const auto until = soon(20000); !c->acknowledged();) {
      ASSERT_LT(Clock::now(), until);
      std::this_thread::yield();
    }
  for (int w = 0; w < 700; ++w) EXPECT_TRUE(inbox.next(soon()));
  EXPECT_FALSE(inbox.next(soon()));
}

TEST(Inbox, HoldsOneRequestAWorker) {
  Inbox inbox({.key = kKey, .workers = 2});
  Voice v(inbox);
  v.say(v.genuine(1, 5)), v.say(v.genuine(0, 1)), v.say(v.genuine(1, 6));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(v.hears(5000));
  EXPECT_EQ(inbox.next(soon())->sequence, 6);  // where 5 waited
  EXPECT_EQ(inbox.next(soon())->worker, 0);
  EXPECT_FALSE(inbox.next(soon()));
  EXPECT_EQ(inbox.counts().superseded, 1);
}

TEST(Inbox, CountsAndDropsWhatIsNotGenuine) {
  Refusals refusals;
  Inbox inbox({.key = kKey, .workers = 2, .refusals = &refusals});
  Voice v(inbox);
  v.say(v.genuine(0, 1000));
  ASSERT_TRUE(v.hears(5000));
  const Datagram good = v.genuine(0, 2000);
  char bytes[1400] = {};
  std::memcpy(bytes, &good, sizeof good);
  for (size_t n : {0, 1, 47, 49, 64, 65, 1400}) v.say(bytes, n);
  Datagram d = good;
  d.magic ^= 1, v.say(d);
  d = good, d.version = 2, v.say(d);
  d = good, d.job ^= 1, v.say(d);
  for (size_t bit = 128; bit < 8 * sizeof good; bit += 5) {  // worker, argument, sequence, tag
    d = good;
    reinterpret_cast<uint8_t*>(&d)[bit / 8] ^= uint8_t(1 << bit % 8);
    v.say(d);
  }
  d = good, d.kind = 7, v.say(d);
  d = good, Seal(kOther, inbox.invitation().salt).sign(d), v.say(d);
  d = good, Seal(kKey, "another inbox").sign(d), v.say(d);
  v.say(v.genuine(2, 1)), v.say(v.genuine(-1, 1)), v.say(v.genuine(0, 5000, kAcknowledged | 1));
  v.say(v.genuine(0, 999));
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    for (char& c : bytes) c = char(random());
    v.say(bytes, random() % sizeof bytes);
  }
  const int64_t all = 7 + 3 + 52 + 3 + 3 + 1 + 200;
  const InboxCounts c = counts_after(inbox, [&](const InboxCounts& x) { return x.dropped() >= all; });
  EXPECT_EQ(c.dropped(), all);
  EXPECT_EQ(refusals.datagrams, all);
  EXPECT_GE(c.length, 7 + 150);
  EXPECT_GE(c.stranger, 1);
  EXPECT_EQ(c.version, 1);
  EXPECT_EQ(c.job, 3);  // the two other seals are of other jobs too
  EXPECT_EQ(c.forged, 53);
  EXPECT_EQ(c.worker, 3);
  EXPECT_EQ(c.replayed, 1);
  EXPECT_EQ(c.accepted, 1);
  EXPECT_FALSE(v.hears(20)) << "something of it was acknowledged";
  EXPECT_EQ(inbox.next(soon())->sequence, 1000);
  EXPECT_FALSE(inbox.next(soon()));
}

TEST(Inbox, ForgetsTheDeadAndServesThemWhenTheyComeAgain) {
  Inbox inbox({.key = kKey, .workers = 2});
  InboxClient zero(inbox.invitation(), kKey, 0);
  {
    InboxClient one(inbox.invitation(), kKey, 1);
    one.ask(1), zero.ask(1);
  }
  inbox.forget(1);
  EXPECT_EQ(inbox.next(soon())->worker, 0);
  EXPECT_FALSE(inbox.next(soon()));
  InboxClient one(inbox.invitation(), kKey, 1);  // a new process: its sequences are later
  one.ask(1);
  EXPECT_EQ(inbox.next(soon())->worker, 1);
}

TEST(Inbox, WakeEndsAWait) {
  Inbox inbox({.key = kKey, .workers = 1});
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    inbox.wake();
  });
  const auto began = Clock::now();
  EXPECT_FALSE(inbox.next(soon(20000)));
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(10));
  other.join();
}

// Jain's index of how often each of 16 equal workers is served; they compute five times as long as a service
// takes. Time is simulated, requests are not: `serve` picks among those who are ready.
double jain(const std::function<void(int ready)>& ask,
            const std::function<int(const std::vector<bool>&)>& serve) {
  constexpr int n = 16, services = 1600;
  std::vector<double> ready_at(n), served(n);
  std::vector<bool> asks(n, false);
  double now = 2;
  for (int s = 0; s < services; ++s) {
    for (;;) {  // those that have become ready ask, in order of time
      int next = -1;
      for (int w = 0; w < n; ++w)
        if (!asks[size_t(w)] && ready_at[size_t(w)] <= now &&
            (next < 0 || ready_at[size_t(w)] < ready_at[size_t(next)]))
          next = w;
      if (next < 0) break;
      asks[size_t(next)] = true;
      ask(next);
    }
    const int w = serve(asks);
    asks[size_t(w)] = false;
    ++served[size_t(w)];
    now += 1;
    ready_at[size_t(w)] = now + 5;
  }
  double sum = 0, squares = 0;
  for (double v : served) sum += v, squares += v * v;
  return sum * sum / (n * squares);
}

TEST(Inbox, IsFairWherePollingInRankOrderIsNot) {
  Inbox inbox({.key = kKey, .workers = 16});
  std::vector<std::unique_ptr<InboxClient>> clients;
  for (int w = 0; w < 16; ++w) clients.push_back(std::make_unique<InboxClient>(inbox.invitation(), kKey, w));
  const double fair = jain([&](int w) { clients[size_t(w)]->ask(1); },
                           [&](const std::vector<bool>&) { return inbox.next(soon(5000))->worker; });
  const double polled = jain([](int) {},
                             [](const std::vector<bool>& asks) {
                               return int(std::find(asks.begin(), asks.end(), true) - asks.begin());
                             });
  EXPECT_GE(fair, 0.99);
  EXPECT_NEAR(polled, 0.375, 0.005);  // six of sixteen are ever served
}

TEST(Inbox, LosesNoRequestOf512WorkersInBadWeather) {
  constexpr int n = 512, rounds = 4;
  Inbox inbox({.key = kKey, .workers = n});
  LossyProxy proxy(inbox.invitation().port, {.loss = 0.2, .duplication = 0.2, .longest_delay_ms = 15}, n);
  Invitation through = inbox.invitation();
  through.addresses = {"127.0.0.1"}, through.port = proxy.port();
  std::vector<std::vector<int64_t>> served(n);
  std::vector<std::atomic<int>> done(n);
  std::thread server([&] {
    for (int i = 0; i < n * rounds; ++i) {
      const auto r = inbox.next(soon(60000));
      if (!r) return;
      served[size_t(r->worker)].push_back(r->sequence);
      ++done[size_t(r->worker)];
    }
  });
  std::vector<std::unique_ptr<InboxClient>> clients;
  std::vector<int> asked(n, 1);
  for (int w = 0; w < n; ++w) clients.push_back(std::make_unique<InboxClient>(through, kKey, w));
  std::vector<int64_t> first;
  for (auto& c : clients) first.push_back(c->begin(1));
  const auto until = soon(60000);
  for (int finished = 0; finished < n && Clock::now() < until;) {
    finished = 0;
    for (int w = 0; w < n; ++w) {
      const bool free = clients[size_t(w)]->acknowledged() && done[size_t(w)] == asked[size_t(w)];
      if (free && asked[size_t(w)] < rounds)
        clients[size_t(w)]->begin(1), ++asked[size_t(w)];
      else if (free)
        ++finished;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  server.join();
  for (int w = 0; w < n; ++w) {
    std::vector<int64_t> all(rounds);
    for (int i = 0; i < rounds; ++i) all[size_t(i)] = first[size_t(w)] + i;
    EXPECT_EQ(served[size_t(w)], all) << "worker " << w;
  }
  EXPECT_EQ(inbox.counts().accepted, n * rounds);
  EXPECT_GT(inbox.counts().duplicates, n);
  EXPECT_GT(proxy.lost(), n / 2);
  EXPECT_GT(proxy.overtaken(), n / 2);
  EXPECT_FALSE(inbox.next(soon()));
}

}  // namespace
}  // namespace skein::comm
