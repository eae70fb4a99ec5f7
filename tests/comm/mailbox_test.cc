// Mailbox: keys, waiters, bounds, pieces, and what may not come in.
#include "comm/mailbox.h"

#include "comm/notice.h"

#include "tests/support/world.h"

namespace skein::comm {
namespace {

using std::chrono::milliseconds;

Message message(Rank from, Tag tag, int64_t step, float value, uint32_t communicator = 1) {
  Message m;
  m.communicator = communicator;
  m.epoch = 1;
  m.from = from;
  m.tag = tag;
  m.step = step;
  m.payload = Tensor::of<float>({1}, {value});
  m.bytes = 4;
  return m;
}
float value_of(const std::optional<Message>& m) { return m ? *m->payload.data<float>() : -1; }
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

TEST(Mailbox, EqualKeysAndWildcardsKeepTheOrderOfArrival) {
  Mailbox box(0, 4);
  for (int i = 0; i < 3; ++i) box.put(message(1, 7, 0, float(i)));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(value_of(box.poll({1, 1, 7, 0})), float(i));
  box.put(message(3, 7, 9, 10));
  box.put(message(1, 7, 2, 11));
  box.put(message(3, 7, 1, 12));
  EXPECT_EQ(value_of(box.poll({1, 3, 7, kAnyStep})), 10);
  EXPECT_EQ(value_of(box.poll({1, kAnyone, 7, kAnyStep})), 11);
  EXPECT_EQ(value_of(box.poll({1, kAnyone, 7, kAnyStep})), 12);
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

TEST(Mailbox, WhileEpochsOverlapNeighborsComeInAndOlderOnesAreDropped) {
  Mailbox box(0, 2);
  box.membership().let_epochs_overlap();
  const auto put = [&](uint32_t epoch, int64_t step) {
    Message m = message(1, 7, step, float(epoch));
    m.epoch = epoch;
    return box.put(std::move(m));
  };
  EXPECT_EQ(put(1, 0) + put(2, 1), "");
  EXPECT_NE(put(3, 2), "") << "nobody can be two epochs ahead";
  box.begin_epoch(2);
  EXPECT_FALSE(box.poll({1, 1, 7, 0})) << "what waited of epoch 1 is dropped";
  EXPECT_EQ(value_of(box.poll({1, 1, 7, 1})), 2);
  box.begin_epoch(3);
  EXPECT_EQ(put(1, 3), "") << "a worker that was stopped for long is no error";
  EXPECT_FALSE(box.poll({1, 1, 7, 3}));
  EXPECT_TRUE(holds_nothing(box));
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

TEST(Mailbox, TwoMessagesOfOneKeyDoNotMixTheirPieces) {
  Mailbox box(0, 2);
  Header h = message(1, 7, 0, 0);
  h.bytes = 2 * kPieceBytes;
  h.pieces = 2;
  std::vector<std::pair<Header, Tensor>> places;
  for (int copy = 0; copy < 2; ++copy)
    for (h.piece = 0; h.piece < 2; ++h.piece) {
      places.emplace_back(h, box.landing(h, allocator(kCpu)));
      std::fill_n(places.back().second.data<float>(), places.back().second.size(), float(copy));
    }
  box.landed(places[2].first, places[2].second);
  box.landed(places[0].first, places[0].second);
  EXPECT_FALSE(box.poll({1, 1, 7, 0}));
  box.landed(places[1].first, places[1].second);
  const auto m = box.poll({1, 1, 7, 0});
  ASSERT_TRUE(m);
  EXPECT_EQ(m->payload.data<float>()[0], 0);
  EXPECT_EQ(m->payload.data<float>()[m->payload.size() - 1], 0);
  EXPECT_FALSE(box.poll({1, 1, 7, 0}));
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

// Two messages of one key and size: one comes whole, the other in pieces, which have no place in the first.
TEST(Mailbox, KeepsMessagesApartThatAreCutDifferently) {
  Mailbox box(0, 2);
  Header whole = message(1, 7, 0, 0);
  whole.bytes = 3 * kPieceBytes;
  Header cut = whole, narrow = whole;
  cut.pieces = 3, cut.piece = 2;
  narrow.codec = narrow.dtype = uint8_t(kU8);
  const Tensor all = box.landing(whole, allocator(kCpu));
  const Tensor piece = box.landing(cut, allocator(kCpu)), other = box.landing(narrow, allocator(kCpu));
  EXPECT_EQ(all.bytes(), whole.bytes);
  EXPECT_EQ(piece.bytes(), kPieceBytes);
  EXPECT_EQ(other.size(), whole.bytes);
  EXPECT_NE(piece.storage(), all.storage());
  EXPECT_NE(other.storage(), all.storage());
}

}  // namespace
}  // namespace skein::comm
