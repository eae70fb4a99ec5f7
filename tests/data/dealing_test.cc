// Shares by speed: whole, rounded, within memory, and such that the last worker is done as early as can be.
#include "data/dealing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/random.h"
#include "tests/support/files.h"

namespace skein::data {
namespace {

using Shares = std::vector<int64_t>;

double last_done(const Shares& shares, const std::vector<double>& speeds) {
  double t = 0;
  for (size_t r = 0; r < shares.size(); ++r) t = std::max(t, double(shares[r]) / speeds[r]);
  return t;
}

TEST(Dealing, IsInProportionToSpeed) {
  EXPECT_EQ(deal_by_speed(128, {5, 5}), (Shares{64, 64}));
  EXPECT_EQ(deal_by_speed(96, {1, 2}), (Shares{32, 64}));
  EXPECT_EQ(deal_by_speed(128, {1, 2}), (Shares{40, 88}));
  EXPECT_EQ(deal_by_speed(30, {1, 2}), (Shares{10, 20}));
  EXPECT_EQ(deal_by_speed(31, {1, 1, 1}), (Shares{11, 10, 10}));
  EXPECT_EQ(deal_by_speed(100, {1, 1}), (Shares{52, 48}));  // 4 are left over after pieces of 8
  EXPECT_EQ(deal_by_speed(4, {100, 1, 1}), (Shares{2, 1, 1}));
}

TEST(Dealing, TakesWhoIsNotKnownForAverage) {
  EXPECT_EQ(deal_by_speed(40, {10, 0, 30}), deal_by_speed(40, {10, 20, 30}));
  EXPECT_EQ(deal_by_speed(12, {0, 0, 0}), (Shares{4, 4, 4}));
  EXPECT_EQ(with_mean({0, 3, 1}), (std::vector<double>{2, 3, 1}));
}

TEST(Dealing, KeepsWithinMemory) {
  EXPECT_EQ(deal_by_speed(128, {1, 3}, {1000, 64}), (Shares{64, 64}));
  EXPECT_EQ(deal_by_speed(128, {1, 3}, {1000, 70}), (Shares{64, 64}));
  EXPECT_EQ(deal_by_speed(128, {1, 3}, {61, 67}), (Shares{61, 67}));
  const std::string why = testing::message_of<BadOption>([] { deal_by_speed(128, {1, 3}, {60, 67}); });
  EXPECT_NE(why.find("holds 127 of the 128 images of a step"), std::string::npos) << why;
}

// Against shares that hill climbing finds: moving one piece from any worker to any other one does not help.
TEST(Dealing, IsDoneAsEarlyAsCanBe) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Draw draw{seed, Purpose::kTest, 0, 0};
    const int workers = 1 + int(draw.bits(0) % 9);
    const int64_t batch = workers + int64_t(draw.bits(1) % 1000);
    std::vector<double> speeds;
    for (int r = 0; r < workers; ++r) speeds.push_back(0.2 + 5 * double(draw.unit(uint64_t(r) + 9)));
    Shares shares = deal_by_speed(batch, speeds);
    ASSERT_EQ(std::accumulate(shares.begin(), shares.end(), int64_t(0)), batch);
    ASSERT_GE(*std::min_element(shares.begin(), shares.end()), 1);
    const int64_t piece = batch / workers >= 32 ? 8 : 1;
    ASSERT_LE(std::count_if(shares.begin(), shares.end(), [&](int64_t n) { return n % piece != 0; }), 1);
    const double t = last_done(shares, speeds);
    for (size_t a = 0; a < shares.size(); ++a)
      for (size_t b = 0; b < shares.size(); ++b) {
        Shares other = shares;
        other[a] -= piece, other[b] += piece;
        const bool is_deal = a != b && other[a] > 0;
        EXPECT_TRUE(!is_deal || last_done(other, speeds) >= t * (1 - 1e-12)) << seed;
      }
  }
}

}  // namespace
}  // namespace skein::data
