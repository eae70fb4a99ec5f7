// Which congestion control the connections of a job have, on whatever kernel this is.
#include "comm/join/congestion.h"

#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace skein::comm {
namespace {

std::string control_of(const Fd& s) {
  char name[16] = {};
  socklen_t n = sizeof name;
  EXPECT_EQ(getsockopt(s.get(), IPPROTO_TCP, TCP_CONGESTION, name, &n), 0);
  return std::string(name, strnlen(name, n));
}
bool use(const Fd& s, const std::string& control) {
  return setsockopt(s.get(), IPPROTO_TCP, TCP_CONGESTION, control.data(), socklen_t(control.size())) == 0;
}
Fd new_socket() { return Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
bool suits_bursts(const std::string& control) { return control == "cubic" || control == "reno"; }

struct Congestion : ::testing::Test {
  void SetUp() override {
    kernels = control_of(new_socket());
    listener = listen_tcp("127.0.0.1", {}, port);
    calls = connect_tcp({"127.0.0.1"}, port, after(5));
    called = Fd(accept(listener.get(), nullptr, nullptr));
    ASSERT_TRUE(calls && called);
  }
  int port = 0;
  std::string kernels;
  Fd listener, calls, called;
};

TEST_F(Congestion, BothEndsHaveTheKernelsUnlessThatIsBbr) {
  for (const Fd* end : {&calls, &called}) {
    if (kernels == "bbr")
      EXPECT_TRUE(suits_bursts(control_of(*end))) << control_of(*end);
    else
      EXPECT_EQ(control_of(*end), kernels);
  }
}

TEST_F(Congestion, BbrIsReplacedAndNothingElse) {
  const Fd s = new_socket();
  ASSERT_TRUE(use(s, "reno"));  // every kernel has it, for everyone
  suit_bursts(s);
  EXPECT_EQ(control_of(s), "reno");
  if (!use(s, "bbr")) GTEST_SKIP() << "this kernel has no BBR, or not for this user";
  suit_bursts(s);
  EXPECT_TRUE(suits_bursts(control_of(s))) << control_of(s);
}

TEST_F(Congestion, ALongPathGetsWhatTheKernelWouldUse) {
  ASSERT_TRUE(use(calls, "reno"));
  suit_path(calls);  // loopback is short
  EXPECT_EQ(control_of(calls), "reno");
  suit_path(calls, std::chrono::microseconds(0));
  EXPECT_EQ(control_of(calls), kernels == "bbr" ? "bbr" : "reno");
}

}  // namespace
}  // namespace skein::comm
