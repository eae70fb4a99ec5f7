// Schedules: ends, continuity, monotony, and what the command line may say.
#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skein::optim {
namespace {

TEST(Schedule, WarmupIsAStraightLineThatEndsWhereTheCurveBegins) {
  for (const char* kind : {"constant", "cosine", "poly", "step"}) {
    const Schedule s = parse_schedule(kind, 0.8, 100, 10, 2);
    ASSERT_EQ(s.warmup, 200);
    const double stride = s.at(1) - s.at(0);
    EXPECT_GT(s.at(0), 0) << kind;
    for (int64_t k = 0; k < 200; ++k) EXPECT_NEAR(s.at(k + 1) - s.at(k), stride, 1e-12) << kind << ' ' << k;
    EXPECT_DOUBLE_EQ(s.at(200), 0.8) << kind;
  }
}

TEST(Schedule, WarmupStartsFromTheRateGiven) {
  Schedule s = parse_schedule("constant", 1.0, 10, 10, 0.9);
  s.warmup_from = 0.5;
  EXPECT_DOUBLE_EQ(s.at(0), 0.55);
  EXPECT_DOUBLE_EQ(s.at(8), 0.95);
  EXPECT_DOUBLE_EQ(s.at(9), 1.0);
}

TEST(Schedule, CosineRunsFromTheRateToZero) {
  const Schedule s = parse_schedule("cosine", 0.4, 50, 4, 0);
  EXPECT_DOUBLE_EQ(s.at(0), 0.4);
  EXPECT_NEAR(s.at(100), 0.2, 1e-15);
  EXPECT_NEAR(s.at(200), 0, 1e-15);
  EXPECT_NEAR(s.at(1000), 0, 1e-15);
  for (int64_t k = 0; k < 200; ++k) EXPECT_GT(s.at(k), s.at(k + 1));
  for (int64_t k = 0; k <= 100; ++k)
    EXPECT_NEAR(s.at(k) + s.at(200 - k), 0.4, 1e-12);  // symmetry about the middle
}

TEST(Schedule, PolyHasItsPower) {
  EXPECT_DOUBLE_EQ(parse_schedule("poly", 1, 100, 1, 0).at(50), 0.25);
  EXPECT_DOUBLE_EQ(parse_schedule("poly:1", 1, 100, 1, 0).at(25), 0.75);
  EXPECT_DOUBLE_EQ(parse_schedule("poly:0.5", 1, 100, 1, 0).at(75), 0.5);
  EXPECT_DOUBLE_EQ(parse_schedule("poly", 1, 100, 1, 0).at(100), 0);
}

TEST(Schedule, StepFallsAtItsMilestones) {
  const Schedule s = parse_schedule("step", 1, 10, 90, 5);
  EXPECT_EQ(s.milestones, (std::vector<int64_t>{300, 600, 800}));
  EXPECT_DOUBLE_EQ(s.at(299), 1);
  EXPECT_DOUBLE_EQ(s.at(300), 0.1);
  EXPECT_NEAR(s.at(600), 0.01, 1e-15);
  EXPECT_NEAR(s.at(899), 0.001, 1e-15);
  EXPECT_EQ(parse_schedule("step", 1, 10, 9, 0).milestones, (std::vector<int64_t>{30, 60, 80}));
  const Schedule own = parse_schedule("step:1,2.5:0.5", 1, 10, 4, 0);
  EXPECT_EQ(own.milestones, (std::vector<int64_t>{10, 25}));
  EXPECT_DOUBLE_EQ(own.at(39), 0.25);
  EXPECT_DOUBLE_EQ(parse_schedule("step::0.5", 1, 10, 9, 0).at(30), 0.5);
}

TEST(Schedule, WarmupMayLastTheWholeRun) {
  const Schedule s = parse_schedule("cosine", 1, 10, 1, 1);
  EXPECT_LT(s.at(9), 1);
  EXPECT_DOUBLE_EQ(s.at(10), 1);
}

TEST(Schedule, IsNeverNegativeNorAboveTheRate) {
  for (const char* kind : {"constant", "cosine", "poly:3", "step"})
    for (double epochs : {0.05, 1.0, 3.7}) {
      const Schedule s = parse_schedule(kind, 0.3, 20, epochs, epochs / 4);
      for (int64_t k = 0; k < 100; ++k) {
        EXPECT_GE(s.at(k), 0) << kind;
        EXPECT_LE(s.at(k), 0.3 + 1e-15) << kind;
      }
    }
}

TEST(Schedule, RefusesWhatCannotBe) {
  for (const char* bad : {"cosin", "", "poly:x", "poly:0", "poly:1:2", "cosine:1", "step:3,1", "step:1:2:3",
                          "step:1:0", "step:1,:0.1", "poly:nan"})
    EXPECT_THROW(parse_schedule(bad, 0.1, 10, 1, 0), BadOption) << bad;
  EXPECT_THROW(parse_schedule("cosine", -0.1, 10, 1, 0), BadOption);
  EXPECT_THROW(parse_schedule("cosine", NAN, 10, 1, 0), BadOption);
  EXPECT_THROW(parse_schedule("cosine", 0.1, 10, 1, 2), BadOption);
  EXPECT_THROW(parse_schedule("cosine", 0.1, 10, 1, -1), BadOption);
}

TEST(Schedule, AMistypedNameIsToldItsNearest) {
  try {
    parse_schedule("cosin", 0.1, 10, 1, 0);
    FAIL();
  } catch (const BadOption& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean cosine?"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("--lr-schedule cosin:"), std::string::npos) << e.what();
  }
}

TEST(Schedule, LinearScalingIsLinear) {
  EXPECT_DOUBLE_EQ(scale_rate(0.1, 8192, 256), 3.2);
  EXPECT_DOUBLE_EQ(scale_rate(0.1, 256, 256), 0.1);
  EXPECT_DOUBLE_EQ(scale_rate(0.1, 128, 256), 0.05);
  EXPECT_DOUBLE_EQ(scale_rate(0.002, 64, 256, 0.5), 0.001);
  EXPECT_EQ(scaled_rate_in_words(0.1, 64, 256, 1), "0.025 = 0.1 x 64/256");
  EXPECT_EQ(scaled_rate_in_words(0.002, 64, 256, 0.5), "0.001 = 0.002 x sqrt(64/256)");
}

}  // namespace
}  // namespace skein::optim
