// Takes with ranks as threads: deadlines, disagreements, and peers that have gone or are lost.
#include "comm/communicator/receiver.h"

#include "comm/communicator/notices.h"
#include "tests/support/files.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

using std::chrono::milliseconds;
using testing::message_of;

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

// The hash says ten f32 numbers, whatever the payload is: no honest rank sends this.
TEST(Take, RefusesAPayloadThatIsNotWhatItsLayoutSays) {
  for (const Tensor& payload : {ones(9), Tensor::zeros({10}, kI64), Tensor::zeros({0})}) {
    auto world = local_world(2);
    Communicator c(*world[0], {.deadline = 20});
    Message m;
    m.communicator = 1, m.epoch = c.membership().epoch(), m.from = 1, m.tag = 3, m.step = 6;
    m.bytes = payload.bytes(), m.codec = m.dtype = uint8_t(payload.dtype()), m.layout = layout_of(10, kF32);
    m.payload = payload;
    EXPECT_EQ(world[0]->mailbox().put(std::move(m)), "");
    EXPECT_THROW(c.take(1, 3, 6, ones(10)), Disagreement) << payload.shape() << payload.dtype();
  }
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

// Needs a message of rank 1, which is sent just after it was looked for in vain; then rank 1 leaves.
struct LastWords final : Pending::Op {
  LastWords(Receiver& r, const Key& k, std::unique_ptr<Transport>& sender, bool sends)
      : receiver(r), sender(sender), sends(sends) {
    missing = k;
  }
  void advance() override {
    done = receiver.poll(missing).has_value();
    if (++looks != 2) return;
    if (sends) Communicator(*sender).push(0, missing.tag, missing.step, 1, ones(1));
    sender.reset();
  }
  Receiver& receiver;
  std::unique_ptr<Transport>& sender;
  const bool sends;
  int looks = 0;
};

TEST(Pending, IsDoneByWhatARankSentBeforeItLeft) {
  for (const bool sends : {true, false}) {
    auto world = local_world(2);
    Group g(*world[0], {.deadline = 20}, Members(2), 1, std::make_shared<Meter>());
    Receiver receiver(g);
    Pending p = receiver.begin(std::make_shared<LastWords>(receiver, g.key(1, 3, 5), world[1], sends), 0);
    if (sends)
      EXPECT_NO_THROW(p.wait());
    else
      EXPECT_NE(message_of<PeerLost>([&] { p.wait(); }).find("rank 1 has gone"), std::string::npos);
    EXPECT_EQ(p.done(), sends);
  }
}

}  // namespace
}  // namespace skein::comm
