// Misfortunes: how often they come, whom they spare, and that a seed repeats them.
#include "comm/sim/misfortunes.h"

#include <gtest/gtest.h>

#include "tests/support/sim.h"

namespace skein::comm::sim {
namespace {

int times(const std::string& log, const std::string& line) {
  int n = 0;
  for (size_t at = 0; (at = log.find(line, at)) != std::string::npos; ++at) ++n;
  return n;
}

// The log of so many workers that do nothing for as long.
std::string misfortunes_of(int workers, uint64_t seed, const Rates& r, double until) {
  World world({.weather = {.seed = seed}});
  for (Id id : ids(workers)) world.begin(id, [] { spend(1000); });
  suffer(world, r, until);
  world.run();
  return world.log();
}

TEST(Misfortunes, ComeAsOftenAsTheirRatesSayAndEnd) {
  const std::string log =
      misfortunes_of(4, 7, {.hangs = 0.5, .cuts = 0.25, .hang_seconds = 1, .cut_seconds = 1}, 800);
  EXPECT_NEAR(times(log, " hangs"), 400, 60) << "three standard deviations";
  EXPECT_NEAR(times(log, "cut:"), 200, 42);
  EXPECT_EQ(times(log, "cut:"), times(log, "mended"));
  EXPECT_GT(times(log, " wakes"), 100);
  EXPECT_EQ(times(log, " is killed"), 0);
}

TEST(Misfortunes, SpareAsManyAsAreToBeLeft) {
  EXPECT_EQ(times(misfortunes_of(6, 1, {.kills = 1, .spared = 2}, 500), " is killed"), 4);
}

TEST(Misfortunes, AreThoseOfTheSeedAndStopInTime) {
  const Rates r = {.kills = 0.01, .hangs = 0.3, .cuts = 0.1};
  EXPECT_EQ(misfortunes_of(5, 3, r, 20), misfortunes_of(5, 3, r, 20));
  EXPECT_NE(misfortunes_of(5, 3, r, 20), misfortunes_of(5, 4, r, 20));
  EXPECT_EQ(misfortunes_of(2, 3, r, 0), misfortunes_of(2, 4, r, 0)) << "none has come";
}

}  // namespace
}  // namespace skein::comm::sim
