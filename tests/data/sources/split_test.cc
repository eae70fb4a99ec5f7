// Shards of unequal labels: every sample is used once, by the requested distribution.
#include "data/sources/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/data/spans.h"
#include "tests/support/files.h"

namespace skein::data {
namespace {

using testing::has;
using testing::message_of;

std::vector<int32_t> labels(int64_t size, int classes) {
  std::vector<int32_t> all(static_cast<size_t>(size));
  for (size_t i = 0; i < all.size(); ++i) all[i] = int32_t(i * 7 % size_t(classes));
  return all;
}
Shards shards(const std::string& rule, int64_t size, int classes, int world, uint64_t seed = 1) {
  return make_shards(labels(size, classes), classes, parse_split(rule), world, seed);
}

// Checks that epoch `epoch` has each sample of [0, size) exactly once, with counts that agree.
void expect_each_once(const Portions& p, int64_t size, int world, int64_t batch, int64_t epoch) {
  std::vector<int> seen(static_cast<size_t>(size));
  for (int64_t k = epoch * p.steps_per_epoch(); k < (epoch + 1) * p.steps_per_epoch(); ++k) {
    int64_t sum = 0;
    for (int r = 0; r < world; ++r) {
      sum += p.samples(k, r);
      EXPECT_LE(p.samples(k, r), batch);
      for (int64_t row = 0; row < p.samples(k, r); ++row) ++seen.at(size_t(p.index(k, r, row)));
    }
    EXPECT_EQ(p.samples(k), sum);
    EXPECT_GT(sum, 0);
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), size);
}

TEST(Split, EverySampleIsSeenOnceAnEpoch) {
  for (const int world : {1, 2, 3, 7})
    for (const char* rule : {"dirichlet:0.3", "dirichlet:100", "major:0.1", "major:0"}) {
      const Shards s = shards(rule, 1003, 10, world);
      for (const int64_t epoch : {0, 1, 5}) expect_each_once(Portions(s, 16, 1), 1003, world, 16, epoch);
    }
  for (const int world : {1, 3}) expect_each_once(Portions(1003, 16 * world, world, 1), 1003, world, 16, 2);
}

// Shares by hand: whole steps are split into them, smaller ones in proportion, and the step has
// the same samples.
TEST(Split, SharesMayDiffer) {
  const Portions even(1003, 50, 3, 1);
  Portions p(1003, 50, 3, 1);
  p.share_out({5, 30, 15});
  EXPECT_EQ(p.shares(), (std::vector<int64_t>{5, 30, 15}));
  EXPECT_EQ(p.steps_per_epoch(), 21);
  expect_each_once(p, 1003, 3, 30, 2);
  for (int r = 0; r < 3; ++r) EXPECT_EQ(p.samples(7, r), p.share_of(r));
  EXPECT_EQ(p.samples(20), 3);
  for (int64_t k : {0, 5, 20}) {
    std::vector<int64_t> one, other;
    for (int r = 0; r < 3; ++r) {
      for (int64_t i = 0; i < even.samples(k, r); ++i) one.push_back(even.index(k, r, i));
      for (int64_t i = 0; i < p.samples(k, r); ++i) other.push_back(p.index(k, r, i));
    }
    EXPECT_EQ(one, other) << k;
  }
  EXPECT_FALSE(p.even());
  p.share_out({17, 17, 16});
  EXPECT_TRUE(p.even());
  for (int r = 0; r < 3; ++r) EXPECT_EQ(p.samples(20, r), even.samples(20, r));
  EXPECT_THROW(p.share_out({17, 17, 17}), Error);
  EXPECT_THROW(p.share_out({25, 25}), Error);
}

// 50 samples over 7 workers: 8, 7, 7, ...; the last step has 3, fewer than there are workers.
TEST(Split, AGlobalBatchNeedNotDivide) {
  const Portions p(1003, 50, 7, 1);
  EXPECT_EQ(p.steps_per_epoch(), 21);
  expect_each_once(p, 1003, 7, 8, 2);
  for (int r = 0; r < 7; ++r) {
    EXPECT_EQ(p.samples(0, r), r == 0 ? 8 : 7);
    EXPECT_EQ(p.samples(20, r), r < 3 ? 1 : 0);
  }
  for (const int world : {1, 2, 3, 5})
    for (const int64_t k : {0, 20, 21}) {
      std::vector<int64_t> dealt, whole;
      const Portions one(1003, 50, 1, 1), some(1003, 50, world, 1);
      for (int64_t row = 0; row < one.samples(k, 0); ++row) whole.push_back(one.index(k, 0, row));
      for (int r = 0; r < world; ++r)
        for (int64_t row = 0; row < some.samples(k, r); ++row) dealt.push_back(some.index(k, r, row));
      EXPECT_EQ(dealt, whole) << world;
    }
}

TEST(Split, OneDeckIsDealtAsTheSamplerSays) {
  const Portions p(1003, 24, 3, 5);
  EXPECT_EQ(p.steps_per_epoch(), steps_per_epoch(1003, 24));
  for (const int64_t k : {0, 41, 42, 77, 200})
    for (int r = 0; r < 3; ++r) {
      const Span span = span_of(1003, 24, k % 42, r, 3);
      EXPECT_EQ(p.samples(k, r), span.size());
      for (int64_t row = 0; row < span.size(); ++row)
        EXPECT_EQ(p.index(k, r, row), sample_index(5, 1003, k / 42, span.begin + row));
    }
}

// The samples that worker r takes in steps [from, to).
void take(const Portions& p, int r, int64_t from, int64_t to, std::vector<int64_t>& out) {
  for (int64_t k = from; k < to; ++k)
    for (int64_t row = 0; row < p.samples(k, r); ++row) out.push_back(p.index(k, r, row));
}

// Workers at different steps become others, again and again: over the epoch every sample is taken once.
TEST(Split, WhatIsLeftOfAnEpochIsDealtOnceHoweverManyWorkersThereAre) {
  std::mt19937_64 random(11);
  const auto draw = [&](int64_t most) { return int64_t(random() % uint64_t(most + 1)); };
  for (int round = 0; round < 200; ++round) {
    const int64_t size = 40 + draw(400), batch = 10 + draw(20), epoch = draw(3);
    std::vector<int64_t> all;
    Leftover left;
    int64_t k = epoch * steps_per_epoch(size, batch);
    const int64_t end = k + steps_per_epoch(size, batch);
    for (int changes = int(draw(3)); changes >= 0; --changes) {
      const int world = 1 + int(draw(5));
      Portions p(size, batch, world, 7);
      p.deal_again(left);
      std::vector<int64_t> taken;
      for (int r = 0; r < world; ++r) {
        taken.push_back(changes == 0 ? end : k + draw(end - k));
        take(p, r, k, taken.back(), all);
      }
      left = Leftover::read(p.left_of(epoch, taken).write());
      EXPECT_EQ(left, p.left_of(epoch, taken));
      EXPECT_EQ(int64_t(all.size()) + left.size(), size);
      k = p.first_of(left);
      EXPECT_LE(k, end);
    }
    EXPECT_EQ(k, end);
    std::sort(all.begin(), all.end());
    std::vector<int64_t> whole(static_cast<size_t>(size));
    std::iota(whole.begin(), whole.end(), 0);
    EXPECT_EQ(all, whole) << "round " << round;
    Portions later(size, batch, 2, 7), fresh(size, batch, 2, 7);
    later.deal_again(left);
    std::vector<int64_t> a, b;
    take(later, 1, end, end + 2, a), take(fresh, 1, end, end + 2, b);
    EXPECT_EQ(a, b) << "the epoch after it is dealt as ever";
  }
}

TEST(Split, WhatIsLeftIsReadOnlyFromItsOwnWords) {
  EXPECT_EQ(Leftover::read(""), Leftover());
  EXPECT_EQ(Leftover::read("2"), (Leftover{2, {}}));
  for (const char* bad :
       {"x", "-1 0-3", "1 3-3", "1 5-2", "1 2:4", "1 2-", "1 2-4 x", "1 5-7 2-4", "1 2-4 3-5", "1 2-4 4-5"})
    EXPECT_TRUE(has(message_of<Error>([&] { (void)Leftover::read(bad); }), "not what is left of an epoch"))
        << bad;
}

TEST(Split, WhatIsLeftBelongsToADataSetOfThisSize) {
  Portions p(100, 10, 2, 1), apart(shards("dirichlet:1", 600, 5, 3), 10, 1);
  p.deal_again(Leftover::read("1 40-60 99-100"));
  const std::string bad = message_of<BadOption>([&] { p.deal_again(Leftover::read("1 40-60 100-101")); });
  EXPECT_TRUE(has(bad, "up to number 101 are left, and the training set has 100")) << bad;
  EXPECT_TRUE(has(message_of<BadOption>([&] { apart.deal_again(Leftover::read("1 2-4")); }), "--split iid"));
}

TEST(Split, OrderWithinAShardChangesWithTheEpochAndNothingElse) {
  const Shards s = shards("dirichlet:1", 600, 5, 3);
  const Portions p(s, 10, 1), again(s, 10, 1);
  const auto order = [&](const Portions& q, int64_t epoch) {
    std::vector<int64_t> all;
    for (int64_t k = 0; k < q.steps_per_epoch(); ++k)
      for (int64_t row = 0; row < q.samples(k, 1); ++row)
        all.push_back(q.index(epoch * q.steps_per_epoch() + k, 1, row));
    return all;
  };
  EXPECT_EQ(order(p, 3), order(again, 3));
  EXPECT_NE(order(p, 3), order(p, 4));
  std::vector<int64_t> sorted = order(p, 3);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, s[1]);
}

// The share of a class that a worker gets has the mean 1/n and the variance (1/n)(1 - 1/n)/(nA + 1).
TEST(Split, SharesOfAClassAreDirichletDistributed) {
  constexpr int kClasses = 3000, kEach = 60, kWorld = 4;
  for (const double a : {0.1, 0.5, 2.0, 20.0}) {
    const auto counts = histograms(shards(text("dirichlet:", a), kClasses * kEach, kClasses, kWorld),
                                   labels(kClasses * kEach, kClasses), kClasses);
    const double variance = 0.25 * 0.75 / (kWorld * a + 1);
    for (int r = 0; r < kWorld; ++r) {
      double sum = 0, squares = 0;
      for (const int64_t n : counts[size_t(r)]) {
        const double p = double(n) / kEach;
        sum += p, squares += (p - 0.25) * (p - 0.25);
      }
      EXPECT_NEAR(sum / kClasses, 0.25, 4 * std::sqrt(variance / kClasses)) << a;
      EXPECT_NEAR(squares / kClasses / variance, 1, 0.12) << a << " worker " << r;
    }
  }
}

TEST(Split, MajorGivesEachWorkerItsFractionOfOneClass) {
  for (const auto& [rule, fraction, world] : {std::tuple{"major:0.25", 0.25, 4},
                                              {"major:0.1", 0.1, 3},
                                              {"major:0.9", 0.9, 20},
                                              {"major:1", 1.0, 10}}) {
    const auto counts = histograms(shards(rule, 1000, 10, world), labels(1000, 10), 10);
    for (int r = 0; r < world; ++r) {
      int64_t size = 0;
      for (int64_t n : counts[size_t(r)]) size += n;
      EXPECT_NEAR(double(size), 1000. / world, 1);
      EXPECT_GE(double(counts[size_t(r)][size_t(r % 10)]), fraction * double(size))
          << rule << " worker " << r;
    }
  }
}

TEST(Split, MajorThatCannotBeSaysWhatCan) {
  const std::string what = message_of<BadOption>([] { shards("major:0.9", 1000, 10, 4); });
  EXPECT_TRUE(has(what, "major:0.9")) << what;
  const size_t at = what.find("major:", 20);
  ASSERT_NE(at, std::string::npos) << what;
  EXPECT_NO_THROW(shards(text("major:", std::stod(what.substr(at + 6))), 1000, 10, 4)) << what;
}

TEST(Split, TheSeedDecides) {
  for (const char* rule : {"dirichlet:0.5", "major:0.2"}) {
    EXPECT_EQ(shards(rule, 1000, 10, 4, 3), shards(rule, 1000, 10, 4, 3));
    EXPECT_NE(shards(rule, 1000, 10, 4, 3), shards(rule, 1000, 10, 4, 4));
  }
}

TEST(Split, RefusesWhatItCannotRead) {
  for (const char* said : {"", "even", "dirichlet", "dirichlet:", "dirichlet:x", "dirichlet:0.5x",
                           "major:nan", "dirichlet:inf", "iid:1", "major"})
    EXPECT_TRUE(has(message_of<BadOption>([&] { parse_split(said); }), "dirichlet:A")) << said;
  EXPECT_TRUE(has(message_of<BadOption>([] { parse_split("dirichlet:0"); }), "above 0"));
  EXPECT_TRUE(has(message_of<BadOption>([] { parse_split("dirichlet:-1"); }), "above 0"));
  EXPECT_TRUE(has(message_of<BadOption>([] { parse_split("major:1.1"); }), "between 0 and 1"));
  EXPECT_TRUE(
      has(message_of<BadOption>([] { shards("dirichlet:0.001", 100, 2, 8); }), "gets none of the 100"));
}

}  // namespace
}  // namespace skein::data
