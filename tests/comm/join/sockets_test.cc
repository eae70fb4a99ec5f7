// Which addresses a host has for others, and what can be known of a port.
#include "comm/join/sockets.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "comm/join/interfaces.h"
#include "tests/support/files.h"

namespace skein::comm {
namespace {

TEST(Sockets, AddressesThatLeadBackToTheirHostAreOfferedLast) {
  const std::vector<std::string> all = own_addresses();
  EXPECT_EQ(all.size(), interfaces().size());
  EXPECT_TRUE(std::is_partitioned(all.begin(), all.end(), [](const auto& a) { return !leads_back(a); }));
  EXPECT_TRUE(all.back().starts_with("127."));
  EXPECT_TRUE(leads_back("127.0.1.1"));
  EXPECT_FALSE(leads_back("198.51.100.7"));  // not an address of this host
}

TEST(Sockets, AHostSaysThatNobodyListensAndSilenceSaysNothing) {
  int port = 0;
  {
    const Fd listener = listen_tcp("127.0.0.1", {}, port);
    EXPECT_EQ(listens("127.0.0.1", port, after(5)), std::optional(true));
  }
  EXPECT_EQ(listens("127.0.0.1", port, after(5)), std::optional(false));
  EXPECT_EQ(listens("no address", port, after(5)), std::nullopt);
}

TEST(Sockets, AHostThatHasNoMoreDescriptorsSaysSo) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  int port = 0;
  const std::string what = testing::message_of<Error>([&] { listen_tcp("127.0.0.1", {}, port); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_NE(what.find(std::strerror(EMFILE)), std::string::npos) << what;
}

TEST(Sockets, AWriteToAPeerThatDoesNotReadEndsAtItsDeadline) {
  int port = 0;
  const Fd listener = listen_tcp("127.0.0.1", {}, port), s = connect_tcp({"127.0.0.1"}, port, after(5));
  const Fd peer(accept(listener.get(), nullptr, nullptr));
  ASSERT_TRUE(s && peer);
  // If the write heeds no deadline, the hang-up ends it.
  std::atomic<bool> over{false};
  std::thread hangs_up([&] {
    for (const auto until = after(10); !over && Clock::now() < until;)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    shutdown(s.get(), SHUT_RDWR);
  });
  const auto began = Clock::now();
  EXPECT_FALSE(write_all(s, std::string(64 << 20, 'x'), after(0.3)));
  EXPECT_GE(seconds_since(began), 0.25);
  EXPECT_LT(seconds_since(began), 5);
  over = true;
  hangs_up.join();
}

}  // namespace
}  // namespace skein::comm
