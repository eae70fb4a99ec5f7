// Callers who push others out, and those who are pushed out.
#include "comm/join/reception.h"
#include "tests/support/keys.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <thread>

namespace skein::comm {
namespace {

using std::chrono::seconds;

// A connection from this address of our own to that port.
Fd call_from(const char* address, int port) {
  Fd s(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in from{}, to{};
  from.sin_family = to.sin_family = AF_INET;
  inet_pton(AF_INET, address, &from.sin_addr);
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  to.sin_port = htons(uint16_t(port));
  if (!s || bind(s.get(), reinterpret_cast<sockaddr*>(&from), sizeof from) != 0 ||
      connect(s.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    fail_system("calling");
  return s;
}

struct MoreFiles {
  rlimit before{};
  MoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit more{std::min<rlim_t>(before.rlim_max, 4096), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &more);
  }
  ~MoreFiles() { setrlimit(RLIMIT_NOFILE, &before); }
};

// The first to call is the last to speak; meanwhile another host has opened more connections than are heard.
TEST(Reception, AFloodFromOneHostPushesOutNoCallerOfAnother) {
  const MoreFiles files;
  int port = 0;
  const Fd listener = listen_tcp("127.0.0.1", {}, port);
  Refusals::Counter strangers{0};
  Reception callers(listener, {.key = kKey, .me = 0, .size = 2}, strangers);
  Fd honest = call_from("127.0.0.1", port);
  std::vector<Fd> flood;
  for (int i = 0; i < 700; ++i) {
    flood.push_back(call_from("127.0.0.2", port));
    EXPECT_FALSE(i % 50 == 0 && callers.next(Clock::now()));
  }
  EXPECT_FALSE(callers.next(after(0.2)));
  EXPECT_GT(strangers, 100);
  std::thread speaking([&] {
    EXPECT_TRUE(call(std::move(honest), {.key = kKey, .me = 1, .size = 2}, 0, Purpose::kMeeting, after(10),
                     after(10)));
  });
  const auto guest = callers.next(after(10));
  speaking.join();
  ASSERT_TRUE(guest);
  EXPECT_EQ(guest->hello.from, 1);
}

TEST(Reception, TellsAWrongProofButNotTheSilent) {
  int port = 0;
  const Fd listener = listen_tcp("127.0.0.1", {}, port);
  Refusals::Counter strangers{0};
  Reception callers(listener, {.key = kKey, .me = 0, .size = 2}, strangers);
  bool refused = false;
  std::thread calling([&] {
    const Credentials other{.key = Secret(std::string(kJobKeyBytes, 'o')), .me = 1, .size = 2};
    EXPECT_FALSE(
        call(call_from("127.0.0.1", port), other, 0, Purpose::kMeeting, after(10), after(10), &refused));
  });
  const auto until = after(10);
  while (strangers == 0 && Clock::now() < until) EXPECT_FALSE(callers.next(after(0.05)));
  calling.join();
  EXPECT_TRUE(refused);
  EXPECT_EQ(strangers, 1);
}

// So look members whether another one lives.
TEST(Reception, WhoHangsUpWithoutAWordIsNoStranger) {
  int port = 0;
  const Fd listener = listen_tcp("127.0.0.1", {}, port);
  Refusals::Counter strangers{0};
  Reception callers(listener, {.key = kKey, .me = 0, .size = 2}, strangers);
  EXPECT_TRUE(call_from("127.0.0.1", port));
  EXPECT_FALSE(callers.next(after(0.2)));
  EXPECT_EQ(strangers, 0);
  Fd talks = call_from("127.0.0.1", port);
  EXPECT_TRUE(write_all(talks, "GET /", after(5)));
  talks = {};
  EXPECT_FALSE(callers.next(after(0.2)));
  EXPECT_EQ(strangers, 1);
}

}  // namespace
}  // namespace skein::comm
