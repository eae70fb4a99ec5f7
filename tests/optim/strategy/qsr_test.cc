// QSR: when its rounds end.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

TEST(Qsr, RoundsGrowAsTheRateFalls) {
  const auto at = [](double rate) { return [rate](int64_t) { return rate; }; };
  EXPECT_EQ(meetings("qsr", "--tau 1 --qsr-c 0.2", 9, at(0.1)), (Steps{4, 8}));  // exactly 4
  EXPECT_EQ(meetings("qsr", "--tau 1 --qsr-c 0.2", 9, at(0.101)), (Steps{3, 6, 9}));
  EXPECT_EQ(meetings("qsr", "--tau 3 --qsr-c 0.2", 9, at(0.2)), (Steps{3, 6, 9}));
  EXPECT_EQ(meetings("qsr", "--tau 1 --qsr-c 0.2 --tau-max 5", 11, at(1e-9)), (Steps{5, 10}));
  EXPECT_EQ(meetings("qsr", "--tau 1 --qsr-c 0.2 --steps-per-epoch 3", 7, at(1e-9)), (Steps{3, 6}));
  // A rate of 0 makes the longest round. It is that of the first step only, after which workers
  // are still equal.
  const auto from_zero = [](int64_t k) { return k % 5 == 0 ? 0 : 1e-3; };
  EXPECT_EQ(meetings("qsr", "--tau 1 --qsr-c 0.2 --tau-max 5", 11, from_zero), (Steps{1, 5, 6, 10, 11}));
  // The rate of a round's first step counts: 2 steps, then 8.
  const auto falling = [](int64_t k) { return k == 0 ? 0.15 : k == 2 ? 0.07 : 0.3; };
  EXPECT_EQ(meetings("qsr", "--tau 2 --qsr-c 0.2", 11, falling), (Steps{2, 10}));
}

// (c / eta)^2 would be 16 steps in the first half of the warm-up and 4 at the full rate.
TEST(Qsr, KeepsTheBasePeriodThroughTheWarmUpAndMeetsAtTheEnd) {
  const auto rising = [](int64_t k) { return k < 4 ? 0.05 : 0.1; };
  const std::string flags = "--tau 2 --qsr-c 0.2 --warmup-steps 8";
  EXPECT_EQ(meetings("qsr", flags, 16, rising), (Steps{2, 4, 6, 8, 12, 16}));
  EXPECT_EQ(meetings("qsr", flags + " --total-steps 15", 15, rising), (Steps{2, 4, 6, 8, 12, 15}));
  // A round that begins in the warm-up may end behind it; one that was cut leaves a resumed run in order.
  EXPECT_EQ(meetings("qsr", "--tau 3 --qsr-c 0.2 --warmup-steps 4 --total-steps 8", 14, rising),
            (Steps{3, 6, 8, 12}));
}

}  // namespace
}  // namespace skein
