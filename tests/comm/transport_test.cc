// The waist with ranks as threads: pushes and takes, deadlines, groups, handlers, refusals, meeting.
#include "comm/transport.h"

#include <cmath>
#include <cstring>

#include "comm/communicator/notices.h"
#include "comm/join/handshake.h"
#include "tests/support/testing.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

using std::chrono::milliseconds;

template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& e) { return e.what(); }
  ADD_FAILURE() << "nothing of the kind was thrown";
  return {};
}
bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.size() == b.size() &&
         std::memcmp(a.raw(), b.raw(), size_t(a.bytes())) == 0;
}
Tensor ones(int64_t n, float a = 1) {
  Tensor x({n});
  fill(x, a);
  return x;
}

TEST(Header, LiesInMemoryAsTheWireWantsIt) {
  EXPECT_EQ(offsetof(Header, communicator), 8u);
  EXPECT_EQ(offsetof(Header, epoch), 12u);
  EXPECT_EQ(offsetof(Header, from), 16u);
  EXPECT_EQ(offsetof(Header, tag), 20u);
  EXPECT_EQ(offsetof(Header, step), 24u);
  EXPECT_EQ(offsetof(Header, piece), 32u);
  EXPECT_EQ(offsetof(Header, bytes), 40u);
  EXPECT_EQ(offsetof(Header, codec), 48u);
  EXPECT_EQ(offsetof(Header, layout), 52u);
  EXPECT_EQ(offsetof(Header, weight), 56u);
  const Header h;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(&h), 4), "SKEN");
}

TEST(Push, ScalesAndLeavesXToItsOwner) {
  in_local_world(3, [](Communicator& c) {
    const Tensor x = ones(1000, float(c.rank()));
    for (Rank r = 0; r < 3; ++r)
      if (r != c.rank()) c.push(r, 1, 0, 0.5f, x, 0.25);
    fill(x, -1.f);  // x is ours again
    c.barrier();
    for (Rank r = 0; r < 3; ++r) {
      if (r == c.rank()) continue;
      const Message m = c.take(r, 1, 0, x);
      EXPECT_EQ(m.from, r);
      EXPECT_EQ(m.weight, 0.25);
      EXPECT_EQ(m.payload.data<float>()[999], 0.5f * float(r));
    }
  });
}

TEST(Push, PacksOncePerDistinctFactor) {
  in_local_world(4, [](Communicator& c) {
    if (c.rank() == 0) {
      c.push({{1, 0.5f, 1}, {2, 0.25f, 2}, {3, 0.5f, 3}}, 1, 0, ones(100));
      c.barrier();
      return;
    }
    const Message m = c.take(0, 1, 0);
    EXPECT_EQ(m.weight, double(c.rank()));
    EXPECT_EQ(m.payload.data<float>()[0], c.rank() == 2 ? 0.25f : 0.5f);
    // Ranks 1 and 3 look at the same memory.
    const auto place = [](const Message& m) {
      return Tensor::of<int64_t>({1}, {int64_t(intptr_t(m.payload.raw()))});
    };
    if (c.rank() == 3) c.push(1, 2, 0, 1, place(m));
    if (c.rank() == 1) { EXPECT_EQ(*c.take(3, 2, 0).payload.data<int64_t>(), *place(m).data<int64_t>()); }
    c.barrier();
  });
}

TEST(Push, KeepsEveryBitOfIntegersAndTheTypeOfFloats) {
  in_local_world(2, [](Communicator& c) {
    const Rank other = 1 - c.rank();
    c.push(other, 1, 0, 1, Tensor::of<int64_t>({2}, {int64_t(1) << 62, -3}));
    EXPECT_EQ(c.take(other, 1, 0).payload.data<int64_t>()[0], int64_t(1) << 62);
    c.push(other, 2, 0, 0.5f, Tensor::of<bf16>({1}, {bf16(3.f)}));
    EXPECT_EQ(float(*c.take(other, 2, 0).payload.data<bf16>()), 1.5f);
  });
}

TEST(Push, OverABf16WireComesBackAsF32RoundedOnce) {
  in_local_world(2,
                 [](Communicator& c) {
                   const Rank other = 1 - c.rank();
                   const Tensor x = Tensor::of<float>({2}, {1.f / 3, 1e-30f});
                   c.push(other, 1, 0, 0.7f, x);
                   const Message m = c.take(other, 1, 0, x);
                   EXPECT_EQ(m.payload.dtype(), kF32);
                   EXPECT_EQ(m.payload.data<float>()[0], float(bf16(0.7f * (1.f / 3))));
                   EXPECT_EQ(c.meter().traffic().bytes, 4);  // two elements of two bytes
                 },
                 {.deadline = 20, .wire = kBF16});
}

// What is filled by hand, and what is read as it came, are the push and the take but for the copies.
TEST(Push, WithoutACopyIsThePush) {
  for (const DType wire : {kF32, kBF16})
    in_local_world(2,
                   [wire](Communicator& c) {
                     const Rank other = 1 - c.rank();
                     const Tensor x = testing::random_uniform({1003}, uint64_t(c.rank())),
                                  filled = c.wire_buffer(x);
                     EXPECT_EQ(filled.dtype(), wire);
                     copy(filled, x);
                     for (const int64_t step : {0, 1}) c.push(other, 1, step, 1, x, 0.25);
                     for (const int64_t step : {2, 3}) c.push_buffer(other, 1, step, filled, 0.25);
                     for (const int64_t step : {0, 2}) {
                       const Message m = c.take(other, 1, step, x),
                                     narrow = c.take(other, 1, step + 1, x, Precision::kWire);
                       EXPECT_EQ(m.payload.dtype(), kF32);
                       EXPECT_EQ(narrow.payload.dtype(), wire);
                       EXPECT_EQ(m.weight, 0.25);
                       EXPECT_EQ(narrow.weight, 0.25);
                       const Tensor theirs = testing::random_uniform(x.shape(), uint64_t(other)),
                                    low({x.size()}, wire), widened({x.size()});
                       copy(low, theirs), copy(widened, low);
                       EXPECT_TRUE(same_bytes(m.payload, widened)) << wire << step;
                       EXPECT_TRUE(same_bytes(narrow.payload, low)) << wire << step;
                     }
                     EXPECT_EQ(c.meter().traffic().bytes, 4 * x.size() * size_of(wire));
                   },
                   {.deadline = 20, .wire = wire});
}

TEST(Push, WithoutACopyIsRefusedInAnotherType) {
  in_local_world(
      1, [](Communicator& c) { EXPECT_THROW(c.push_buffer(0, 1, 0, Tensor::zeros({3}, kBF16)), Error); });
}

TEST(Take, SaysOnExpiryWhomItWaitedForAndWhatCameInstead) {
  in_local_world(2,
                 [](Communicator& c) {
                   if (c.rank() == 1) return c.push(0, 3, 8, 1, ones(1));
                   const auto began = Clock::now();
                   const std::string what = message_of<Timeout>([&] { c.take(1, 4, 17); });
                   EXPECT_GE(Clock::now() - began, milliseconds(200));
                   for (const char* word : {"rank 0", "rank 1", "tag 4", "step 17", "0.2 s", "tag 3 step 8"})
                     EXPECT_NE(what.find(word), std::string::npos) << what;
                 },
                 {.deadline = 0.2});
}

TEST(Take, NoticesThatItsStepWasPassedOver) {
  in_local_world(2, [](Communicator& c) {
    if (c.rank() == 0) c.push(1, 3, 6, 1, ones(1));
    const std::string what = message_of<Disagreement>([&] { c.take(1 - c.rank(), 3, 5); });
    EXPECT_NE(what.find("gone on to step 6"), std::string::npos) << what;
  });
}

TEST(Take, RefusesAnotherLayoutOnBothEnds) {
  in_local_world(2, [](Communicator& c) {
    const std::string what = message_of<Disagreement>([&] {
      if (c.rank() == 0) c.push(1, 3, 6, 1, ones(10));
      c.take(1 - c.rank(), 3, 6, ones(11));
    });
    EXPECT_NE(what.find("rank 1 and rank 0 disagree"), std::string::npos) << what;
  });
}

TEST(Take, OfARankThatLeftIsAnErrorAtOnce) {
  auto world = local_world(2);
  world[1].reset();
  Communicator c(*world[0], {.deadline = 20});
  EXPECT_NE(message_of<PeerLost>([&] { c.take(1, 1, 0); }).find("rank 1 has gone: it has ended its work"),
            std::string::npos);
}

// Two that wait for each other, because each has stopped what the third was part of, are told.
TEST(Take, OfAnotherEndsSoonWhenARankHasEndedWithAnError) {
  auto world = local_world(3);
  world[1]->fail();
  world[1].reset();
  Communicator c(*world[0], {.deadline = 60});
  EXPECT_NE(message_of<PeerLost>([&] { c.take(1, 1, 0); }).find("it has ended with an error"),
            std::string::npos);
  EXPECT_TRUE(c.membership().ended(1));
  const auto began = Clock::now();
  EXPECT_NE(message_of<PeerLost>([&] { c.take(2, 1, 0); }).find("rank 1 is lost: it has ended with an error"),
            std::string::npos);
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(30));
}

TEST(Take, OfAnotherGoesOnWhenARankHasLeftInGoodOrder) {
  auto world = local_world(3);
  world[1].reset();
  Communicator c(*world[0], {.deadline = 2.5});
  EXPECT_THROW(c.take(2, 1, 0), Timeout);
}

TEST(Take, OfWhoeverHasGivenThisRankUpSaysSo) {
  auto world = local_world(3);
  Communicator first(*world[0], {.deadline = 20}), second(*world[1], {.deadline = 20}),
      third(*world[2], {.deadline = 20});
  give_up(first, {2}, {1, 2});
  EXPECT_NE(message_of<GivenUp>([&] { third.take(1, 1, 0); }).find("rank 2 was given up by rank 0"),
            std::string::npos);
  EXPECT_NE(message_of<PeerLost>([&] { second.take(2, 1, 0); }).find("rank 0 has given it up"),
            std::string::npos);
  EXPECT_FALSE(second.membership().ended(2));
}

// It left because rank 2 is lost, and said so: that is who is missed.
TEST(Take, OfARankThatLeftForAnothersLossNamesTheLost) {
  auto world = local_world(3);
  Communicator strict(*world[0], {.deadline = 20}), lax(*world[0], {.deadline = 20, .all_needed = false});
  world[0]->mailbox().lose(2, "it died");
  world[1].reset();
  const std::vector<std::function<void(Communicator&)>> meetings = {[](Communicator& c) { c.take(1, 1, 0); },
                                                                    [](Communicator& c) { c.poll(1, 1, 0); }};
  for (const auto& meet : meetings) {
    EXPECT_NE(message_of<PeerLost>([&] { meet(strict); }).find("rank 2 is lost"), std::string::npos);
    EXPECT_NE(message_of<PeerLost>([&] { meet(lax); }).find("rank 1 has gone"), std::string::npos);
  }
}

TEST(Take, OfOneRankEndsWhenAnotherNeededOneIsLost) {
  auto world = local_world(3);
  Communicator strict(*world[0], {.deadline = 20}), lax(*world[0], {.deadline = 0.05, .all_needed = false});
  world[0]->mailbox().lose(2, "it died");
  EXPECT_NE(message_of<PeerLost>([&] { strict.take(1, 1, 0); }).find("rank 2 is lost"), std::string::npos);
  EXPECT_THROW(lax.take(1, 1, 0), Timeout);
  EXPECT_THROW(lax.take(2, 1, 0), PeerLost);
}

TEST(Push, WaitsForRoomAndNamesWhoTakesNothing) {
  auto world = local_world(2, 1000);
  Communicator a(*world[0], {.deadline = 0.1}), b(*world[1]);
  a.push(1, 1, 0, 1, ones(200));
  a.push(1, 1, 1, 1, ones(50));
  EXPECT_NE(message_of<Timeout>([&] { a.push(1, 1, 2, 1, ones(1)); }).find("rank 1 has not taken"),
            std::string::npos);
  b.take(0, 1, 0);
  EXPECT_NO_THROW(a.push(1, 1, 3, 1, ones(1)));
}

TEST(Group, SharesNoTagsWithItsParentOrATwin) {
  in_local_world(4, [](Communicator& c) {
    const auto all = c.group({3, 2, 1, 0}), twin = c.group({3, 2, 1, 0});
    EXPECT_EQ(all->rank(), 3 - c.rank());
    const Rank next = (c.rank() + 1) % 4, last = (c.rank() + 3) % 4;
    c.push(next, 1, 0, 1, ones(1, 1));
    twin->push(3 - next, 1, 0, 1, ones(1, 2));
    all->push(3 - next, 1, 0, 1, ones(1, 3));
    const Message m = all->take(3 - last, 1, 0);
    EXPECT_EQ(m.from, 3 - last);
    EXPECT_EQ(*m.payload.data<float>(), 3);
    EXPECT_EQ(*c.take(last, 1, 0).payload.data<float>(), 1);
    EXPECT_EQ(*twin->take(3 - last, 1, 0).payload.data<float>(), 2);
    if (c.rank() % 2 == 0) {  // the others need not know
      const auto even = c.group({0, 2});
      const Tensor x = ones(5);
      even->all_reduce(x).wait();
      EXPECT_EQ(x.data<float>()[4], 2);
    }
    c.barrier();
  });
}

TEST(Handler, AnswersWhileItsRankComputes) {
  in_local_world(3, [](Communicator& c) {
    std::atomic<int> served{0};
    if (c.rank() == 0)
      c.on(5, [&](const Message& m) {
        c.push(m.from, 5, m.step, 1, ones(1, 10 * m.payload.data<float>()[0]));
        ++served;
      });
    if (c.rank() > 0)
      for (int64_t k = 0; k < 50; ++k) {
        c.push(0, 5, k, 1, ones(1, float(k)));
        ASSERT_EQ(*c.take(0, 5, k).payload.data<float>(), float(10 * k));
      }
    else
      while (served < 100) std::this_thread::yield();  // computes, and never takes
    c.barrier();
  });
}

TEST(Handler, ItsErrorIsThrownByTheNextWait) {
  in_local_world(2, [](Communicator& c) {
    if (c.rank() == 0) {
      c.on(5, [](const Message&) { throw Error("cannot be served"); });
      EXPECT_NE(message_of<Error>([&] { c.take(1, 1, 0); }).find("cannot be served"), std::string::npos);
    } else {
      c.push(0, 5, 0, 1, ones(1));
    }
  });
}

TEST(Handshake, HangsUpOnStrangersAndCountsThem) {
  const std::string name = "skein-test-" + hex(random_bytes(8));
  const std::vector<std::string> secrets = {std::string(32, 'a'), std::string(32, 'b')};
  const Fd listener = listen_unix(name, 8);
  int64_t strangers = 0;
  std::thread knocking([&] {
    for (const std::string& words : {std::string(), std::string(40, 'x'), std::string(7, '\0')}) {
      const Fd s = connect_unix(name);
      write_all(s, words, Clock::now() + milliseconds(500));
    }
    int64_t none = 0;
    HandshakeOptions wrong{.me = 1,
                           .peers = {0},
                           .secrets = {std::string(32, 'c'), secrets[1]},
                           .dial = {},
                           .welcome = {},
                           .deadline = {}};
    wrong.deadline = Clock::now() + std::chrono::seconds(10);
    wrong.dial = [&](Rank) { return connect_unix(name); };
    handshake(wrong, Fd(), none);  // says a wrong word and is hung up on
    HandshakeOptions right = wrong;
    right.secrets = secrets;
    EXPECT_EQ(handshake(right, Fd(), none).count(0), 1u);
  });
  HandshakeOptions m{
      .me = 0, .peers = {1}, .secrets = secrets, .dial = {}, .welcome = same_user, .deadline = {}};
  m.deadline = Clock::now() + std::chrono::seconds(10);
  EXPECT_EQ(handshake(m, listener, strangers).count(1), 1u);
  EXPECT_EQ(strangers, 4);
  knocking.join();
}

TEST(Handshake, NamesWhoDidNotCome) {
  const Fd listener = listen_unix("skein-test-" + hex(random_bytes(8)), 8);
  int64_t strangers = 0;
  HandshakeOptions m{.me = 0,
                     .peers = {1, 2},
                     .secrets = std::vector<std::string>(3),
                     .dial = {},
                     .welcome = same_user,
                     .deadline = {}};
  m.deadline = Clock::now() + milliseconds(50);
  EXPECT_NE(message_of<Timeout>([&] { handshake(m, listener, strangers); }).find("rank 1, 2"),
            std::string::npos);
}

}  // namespace
}  // namespace skein::comm
