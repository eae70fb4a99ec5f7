// Mailbox: waiters, bounds, pieces, and what may not come in.
#include "comm/mailbox.h"

#include "comm/notice.h"

#include "tests/support/messages.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

using std::chrono::milliseconds;

// There is room for as much as a mailbox holds of a sender only while nothing of it is there.
bool holds_nothing(Mailbox& box) {
  for (Rank r = 0; r < box.membership().size(); ++r)
    if (!box.room(r, int64_t(1) << 29)) return false;
  return true;
}

TEST(Mailbox, TakesByCommunicatorSenderTagAndStep) {
  Mailbox box(0, 4);
  box.put(message(1, 7, 3, 1));
  box.put(message(2, 7, 3, 2));
  box.put(message(1, 8, 3, 3));
  box.put(message(1, 7, 4, 4));
  box.put(message(1, 7, 3, 5, 2));
  EXPECT_EQ(value_of(box.poll({2, 1, 7, 3})), 5);
  EXPECT_EQ(value_of(box.poll({1, 1, 7, 4})), 4);
  EXPECT_EQ(value_of(box.poll({1, 1, 8, 3})), 3);
  EXPECT_EQ(value_of(box.poll({1, 2, 7, 3})), 2);
  EXPECT_EQ(value_of(box.poll({1, 1, 7, 3})), 1);
  EXPECT_FALSE(box.poll({1, 1, 7, 3}));
  EXPECT_TRUE(holds_nothing(box));
}

TEST(Mailbox, WaitWakesForTheAskedKeyOnly) {
  Mailbox box(0, 4);
  std::atomic<bool> woke{false};
  std::thread waiter([&] {
    box.wait({1, 1, 7, 5}, Clock::now() + std::chrono::seconds(20));
    woke = true;
  });
  std::this_thread::sleep_for(milliseconds(30));
  box.put(message(1, 7, 4, 0));
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_FALSE(woke);
  box.put(message(1, 7, 5, 0));
  waiter.join();
  EXPECT_TRUE(woke);
}

TEST(Mailbox, AWaitEndsForAKeyThatIsHeeded) {
  Mailbox box(0, 4);
  std::atomic<int> woke{0};
  std::thread waiter([&] {
    {
      const Mailbox::Heed heed(box, {1, kAnyone, 9, 2});
      box.wait({1, 1, 7, 5}, Clock::now() + std::chrono::seconds(20));
    }
    woke = 1;
    box.wait({1, 1, 7, 5}, Clock::now() + std::chrono::seconds(20));
    woke = 2;
  });
  std::this_thread::sleep_for(milliseconds(30));
  box.put(message(3, 9, 1, 0));  // of another step
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(woke, 0);
  box.put(message(3, 9, 2, 0));
  for (const auto end = Clock::now() + std::chrono::seconds(10); woke < 1 && Clock::now() < end;)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(woke, 1);
  box.put(message(2, 9, 2, 0));  // is heeded no longer
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(woke, 1);
  box.put(message(1, 7, 5, 0));
  waiter.join();
}

TEST(Mailbox, AWaitEndsAtItsDeadline) {
  Mailbox box(0, 2);
  const auto began = Clock::now();
  box.wait({1, 1, 7, 5}, began + milliseconds(30));
  EXPECT_GE(Clock::now() - began, milliseconds(30));
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(5));
}

TEST(Mailbox, AFullMailboxMakesTheSenderWaitAndOneMessageAlwaysFits) {
  Mailbox box(0, 3, 8);
  EXPECT_TRUE(box.room(1, 1000));
  box.put(message(1, 7, 0, 0));
  EXPECT_TRUE(box.room(1, 4));
  EXPECT_FALSE(box.room(1, 5));
  EXPECT_TRUE(box.room(2, 1000));  // another sender's share
  std::thread taker([&] {
    std::this_thread::sleep_for(milliseconds(30));
    box.poll({1, 1, 7, 0});
  });
  EXPECT_TRUE(box.wait_room(1, 1000, Clock::now() + std::chrono::seconds(20)));
  taker.join();
}

TEST(Mailbox, AnotherEpochIsRefusedAndSaysSoHere) {
  Mailbox box(0, 2);
  Message m = message(1, 7, 0, 0);
  m.epoch = 3;
  EXPECT_NE(box.put(std::move(m)).find("epoch 3, ours is 1"), std::string::npos);
  EXPECT_THROW(box.check({1, 1, 7, 0}), Disagreement);
  EXPECT_FALSE(box.poll({1, 1, 7, 0}));
}

TEST(Mailbox, HeadersThatContradictThemselvesAreRefused) {
  const auto refused = [](auto change) {
    Mailbox box(0, 2);
    Message m = message(1, 7, 0, 0);
    change(m);
    return !box.put(std::move(m)).empty();
  };
  EXPECT_FALSE(refused([](Message&) {}));
  EXPECT_TRUE(refused([](Message& m) { m.bytes = 8; }));
  EXPECT_TRUE(refused([](Message& m) { m.bytes = -4; }));
  EXPECT_TRUE(refused([](Message& m) { m.bytes = 3; }));
  EXPECT_TRUE(refused([](Message& m) { m.codec = 77; }));
  EXPECT_TRUE(refused([](Message& m) { m.codec = uint8_t(kI32); })) << "codecs convert floats only";
  EXPECT_TRUE(refused([](Message& m) { m.pieces = 0; }));
  EXPECT_TRUE(refused([](Message& m) { m.piece = 1; }));
  EXPECT_TRUE(refused([](Message& m) { m.pieces = 2; }));
  EXPECT_TRUE(refused([](Message& m) { m.kind = Kind(99); }));
}

TEST(Mailbox, NoMemoryIsTakenOnTheWordOfAHeader) {
  Mailbox box(0, 2);
  Message m = message(1, 7, 0, 0);
  m.pieces = uint32_t(1) << 31, m.bytes = m.pieces * kPieceBytes;
  EXPECT_FALSE(box.landing(m, allocator(kCpu)));
  EXPECT_NE(box.put(m).find("more than this machine has memory"), std::string::npos);
  EXPECT_TRUE(holds_nothing(box));
}

TEST(Mailbox, ANoticeIsShort) {
  Mailbox box(0, 2);
  for (const Kind k : {Kind::kRefusal, Kind::kGoodbye, Kind::kGivenUp}) {
    const int64_t before = box.refusals().messages;
    box.put(comm::notice(k, 1, 1, Tensor::zeros({kLongestNotice + 1}, kU8)));
    EXPECT_EQ(box.refusals().messages, before + 1);
  }
  EXPECT_NO_THROW(box.check({1, 1, 7, 0})) << "it was not believed";
  EXPECT_EQ(box.refusal(std::string(size_t(kLongestNotice) + 5, 'x')).payload.bytes(), kLongestNotice);
}

TEST(Mailbox, StrangersAreCountedAndChangeNothing) {
  Mailbox box(0, 2);
  Message m = message(1, 7, 0, 0);
  m.magic = 1;
  EXPECT_EQ(box.put(m), "");
  m = message(1, 7, 0, 0);
  m.version = 2;
  box.put(m);
  m = message(9, 7, 0, 0);
  box.put(m);
  EXPECT_EQ(box.refusals().messages, 3);
  EXPECT_TRUE(holds_nothing(box));
  EXPECT_NO_THROW(box.check({1, 1, 7, 0}));
}

TEST(Mailbox, PiecesInAnyOrderMakeOneMessage) {
  Mailbox box(0, 2);
  const int64_t n = 3 * kPieceBytes / 4 - 5;  // three pieces, the last shorter
  Header h = message(1, 7, 0, 0);
  h.bytes = 4 * n;
  h.pieces = 3;
  std::vector<std::pair<Header, Tensor>> places;
  for (uint32_t p : {2u, 0u, 1u}) {
    h.piece = p;
    places.emplace_back(h, box.landing(h, allocator(kCpu)));
    const Piece range = piece_of(h);
    ASSERT_EQ(places.back().second.bytes(), range.end - range.begin);
    for (int64_t i = 0; i < places.back().second.size(); ++i)
      places.back().second.data<float>()[i] = float((range.begin / 4 + i) % 1021);
  }
  for (const auto& [header, place] : places) {
    EXPECT_FALSE(box.poll({1, 1, 7, 0}));
    box.landed(header, place);
  }
  const auto m = box.poll({1, 1, 7, 0});
  ASSERT_TRUE(m);
  ASSERT_EQ(m->payload.size(), n);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(m->payload.data<float>()[i], float(i % 1021));
}

TEST(Mailbox, LossAndPoisonEndWaits) {
  Mailbox box(0, 3);
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(20));
    box.lose(2, "it died");
  });
  box.wait({1, 2, 7, 0}, Clock::now() + std::chrono::seconds(20));
  killer.join();
  try {
    box.check({1, 2, 7, 0});
    FAIL();
  } catch (const PeerLost& lost) {
    EXPECT_EQ(lost.rank, 2);
    EXPECT_NE(std::string(lost.what()).find("it died"), std::string::npos);
  }
  EXPECT_NO_THROW(box.check({1, 1, 7, 0}));
  box.poison("the disk is full");
  EXPECT_THROW(box.check({1, 1, 7, 0}), Error);
}

TEST(Mailbox, WhatArrivedBeforeALossCanStillBeTaken) {
  Mailbox box(0, 2);
  box.put(message(1, 7, 0, 42));
  box.lose(1, "it died");
  EXPECT_EQ(value_of(box.poll({1, 1, 7, 0})), 42);
}

}  // namespace
}  // namespace skein::comm
