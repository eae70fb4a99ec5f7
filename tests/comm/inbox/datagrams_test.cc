// Datagrams: what is sent in one piece arrives as so many datagrams, in order, however it is read.
#include "comm/inbox/datagrams.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>

#include "comm/inbox/inbox_wire.h"

namespace skein::comm {
namespace {

constexpr size_t kBytes = 8;

sockaddr_in bind_loopback(const Fd& s) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof a;
  EXPECT_EQ(bind(s.get(), reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
  EXPECT_EQ(getsockname(s.get(), reinterpret_cast<sockaddr*>(&a), &n), 0);
  return a;
}

uint64_t number(const Datagrams::Arrived& a) {
  uint64_t n = 0;
  if (a.at && a.bytes == sizeof n) std::memcpy(&n, a.at, sizeof n);
  return n;
}

// All that comes until `count` have come.
std::vector<uint64_t> take(Datagrams& d, size_t count) {
  std::vector<uint64_t> all;
  while (all.size() < count) {
    const auto arrived = d.receive(true);
    if (arrived.empty()) break;
    for (const auto& a : arrived) all.push_back(number(a));
  }
  return all;
}

struct Pair {
  Pair() {
    const timeval nap{.tv_sec = 5, .tv_usec = 0};
    setsockopt(to.get(), SOL_SOCKET, SO_RCVTIMEO, &nap, sizeof nap);
  }
  Fd from = udp_socket(), to = udp_socket();
  sockaddr_in address = bind_loopback(to);
};

TEST(Datagrams, ArriveInOrderAndOnceEach) {
  Pair p;
  Datagrams out(p.from.get(), kBytes), in(p.to.get(), kBytes);
  for (uint64_t i = 1; i <= 200; ++i) out.add(&i, p.address);  // more than one message holds
  out.flush();
  const std::vector<uint64_t> all = take(in, 200);
  ASSERT_EQ(all.size(), 200u);
  for (uint64_t i = 0; i < 200; ++i) EXPECT_EQ(all[i], i + 1);
  EXPECT_TRUE(in.receive(false).empty());
}

TEST(Datagrams, AreDatagramsToWhoeverReadsThemOneByOne) {
  Pair p;
  Datagrams out(p.from.get(), kBytes);
  for (uint64_t i = 1; i <= 3; ++i) out.add(&i, p.address);
  out.flush();
  for (uint64_t i = 1; i <= 3; ++i) {
    char room[64];
    uint64_t n = 0;
    ASSERT_EQ(recv(p.to.get(), room, sizeof room, 0), ssize_t(kBytes));
    std::memcpy(&n, room, sizeof n);
    EXPECT_EQ(n, i);
  }
}

TEST(Datagrams, GoToWhomTheyAreFor) {
  Pair p;
  const Fd other = udp_socket();
  const sockaddr_in second = bind_loopback(other);
  Datagrams out(p.from.get(), kBytes), one(p.to.get(), kBytes), two(other.get(), kBytes);
  for (uint64_t i = 1; i <= 6; ++i) out.add(&i, i % 3 == 0 ? second : p.address);
  out.flush();
  EXPECT_EQ(take(one, 4), (std::vector<uint64_t>{1, 2, 4, 5}));
  EXPECT_EQ(take(two, 2), (std::vector<uint64_t>{3, 6}));
}

TEST(Datagrams, ShowOtherLengths) {
  Pair p;
  Datagrams in(p.to.get(), kBytes);
  const std::string big(3000, 'x');
  for (const size_t n : {size_t(0), kBytes + 1, big.size()})
    ASSERT_EQ(
        sendto(p.from.get(), big.data(), n, 0, reinterpret_cast<sockaddr*>(&p.address), sizeof p.address),
        ssize_t(n));
  std::vector<size_t> lengths;
  while (lengths.size() < 3)
    for (const auto& a : in.receive(true)) lengths.push_back(a.bytes);
  EXPECT_EQ(lengths, (std::vector<size_t>{0, kBytes + 1, big.size()}));
}

}  // namespace
}  // namespace skein::comm
