// Meters: batches add up by their rows, are read once, and a loss that is not finite is noticed.
#include "apps/train/gradient/meters.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/peek.h"

namespace skein::apps {
namespace {

// A batch with this mean loss over so many rows; `images` of them could be read, and `hits` were right.
void add(Meters& m, float loss, float rows, float hits, float images) {
  m.add(Tensor::of<float>({1}, {loss}), rows, Tensor::of<float>({2}, {hits, images}));
}

TEST(Meters, BatchesCountByTheirRows) {
  Meters m(kCpu);
  add(m, 2, 4, 1, 4);
  add(m, 0.5f, 8, 6, 6);
  ASSERT_TRUE(m.read());
  EXPECT_EQ(m.recent.loss, 2 * 4 + 0.5 * 8);
  EXPECT_EQ(m.recent.mean_loss(), 1.2);
  EXPECT_EQ(m.recent.top1(), 70);
  EXPECT_EQ(Sums().mean_loss() + Sums().top1(), 0);
}

TEST(Meters, WhatWasReadIsNotReadAgain) {
  Meters m(kCpu);
  add(m, 1, 2, 1, 2);
  m.send();
  add(m, 3, 2, 2, 2);  // counts with the next ones
  EXPECT_THROW(m.send(), Error);
  ASSERT_TRUE(m.take());
  EXPECT_EQ(m.epoch.images, 2);
  m.recent = {};
  ASSERT_TRUE(m.read());
  ASSERT_TRUE(m.read());
  EXPECT_EQ(m.recent.loss, 6);
  EXPECT_EQ(m.epoch.loss, 8);
  EXPECT_EQ(m.total.hits, 3);
}

TEST(Meters, ALossThatIsNotFiniteIsNoticedOnce) {
  for (const float bad : {NAN, INFINITY}) {
    Meters m(kCpu);
    add(m, bad, 1, 0, 1);
    EXPECT_FALSE(m.read());
    add(m, 1, 1, 0, 1);
    EXPECT_TRUE(m.read());
  }
}

TEST(Meters, NameAllTheirSums) {
  Meters m(kCpu);
  add(m, 1, 2, 1, 2);
  m.read();
  m.recent = {};
  const Peek seen(m);
  EXPECT_EQ(seen.numbers.size(), 9u);
  EXPECT_EQ(seen.numbers.at("recent.loss"), 0);
  EXPECT_EQ(seen.numbers.at("epoch.loss"), 2);
  EXPECT_EQ(seen.numbers.at("total.images"), 2);
}

}  // namespace
}  // namespace skein::apps
