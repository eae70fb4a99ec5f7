// Parcels: which message is taken, whose bytes are held, and what is said of those that wait.
#include "comm/parcels.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"

namespace skein::comm {
namespace {

constexpr int64_t kPlenty = 1 << 20;

TEST(Parcels, EqualKeysAndWildcardsKeepTheOrderOfArrival) {
  Parcels p(kPlenty);
  for (int i = 0; i < 3; ++i) p.add(message(1, 7, 0, float(i)));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(value_of(p.take({1, 1, 7, 0})), float(i));
  p.add(message(3, 7, 9, 10));
  p.add(message(1, 7, 2, 11));
  p.add(message(3, 7, 1, 12));
  p.add(message(1, 8, 0, 13));
  p.add(message(1, 7, 0, 14, 2));
  EXPECT_EQ(value_of(p.take({1, 3, 7, kAnyStep})), 10);
  EXPECT_EQ(value_of(p.take({1, kAnyone, 7, kAnyStep})), 11);
  EXPECT_EQ(value_of(p.take({1, kAnyone, 7, 1})), 12);
  EXPECT_FALSE(p.has({1, kAnyone, 7, kAnyStep})) << "of other tags and communicators is none";
  EXPECT_FALSE(p.take({1, kAnyone, 7, kAnyStep}));
  EXPECT_EQ(p.arrivals(), 8);
}

TEST(Parcels, RoomIsASendersOwnAndComesBackWithWhatIsTaken) {
  Parcels p(8);
  EXPECT_TRUE(p.room(1, 1000)) << "one message always fits";
  p.add(message(1, 7, 0, 0));
  EXPECT_TRUE(p.room(1, 4));
  EXPECT_FALSE(p.room(1, 5));
  EXPECT_TRUE(p.room(2, 1000));
  p.add(message(1, 7, 1, 0));
  EXPECT_FALSE(p.room(1, 1));
  p.take({1, 1, 7, 1});
  EXPECT_TRUE(p.room(1, 4));
  p.take({1, 1, 7, 0});
  EXPECT_TRUE(p.room(1, 1000));
}

TEST(Parcels, ALaterStepIsOfTheSameSenderTagAndCommunicator) {
  Parcels p(kPlenty);
  p.add(message(1, 7, 9, 0));
  p.add(message(1, 7, 6, 0));
  p.add(message(2, 7, 5, 0));
  EXPECT_EQ(p.later_step({1, 1, 7, 4}), 6);
  EXPECT_EQ(p.later_step({1, 1, 7, 8}), 9);
  EXPECT_FALSE(p.later_step({1, 1, 7, 9})) << "it is there itself";
  EXPECT_FALSE(p.later_step({1, 1, 7, 10}));
  EXPECT_FALSE(p.later_step({1, 1, 6, 4})) << "of another tag";
  EXPECT_FALSE(p.later_step({2, 1, 7, 4}));
}

TEST(Parcels, AListNamesTheFirstFour) {
  Parcels p(kPlenty);
  EXPECT_EQ(p.list(1, kAnyone), "");
  for (int step = 0; step < 4; ++step) p.add(message(1, 7, step, 0));
  p.add(message(2, 8, 0, 0));
  EXPECT_EQ(p.list(1, 2), "tag 8 step 0 of rank 2");
  const std::string four =
      "tag 7 step 0 of rank 1, tag 7 step 1 of rank 1, tag 7 step 2 of rank 1, tag 7 step 3 of rank 1";
  EXPECT_EQ(p.list(1, 1), four);
  EXPECT_EQ(p.list(1, kAnyone), four + ", ...");
  EXPECT_EQ(p.list(2, kAnyone), "");
}

}  // namespace
}  // namespace skein::comm
